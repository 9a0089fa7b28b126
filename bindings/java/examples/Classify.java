import hagane.Argument;
import hagane.Model;
import hagane.Tensor;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/**
 * Classifies a picture: java Classify BUILD PICTURE.ppm
 *
 * <p>The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1.
 */
public final class Classify {
  public static void main(String[] arguments) {
    try (Model model = new Model(Path.of(arguments[0]))) {
      Argument input = model.inputs().get(0);
      int height = (int) input.least()[2], width = (int) input.least()[3];
      float[] pixels = readPicture(Path.of(arguments[1]), height, width);
      Tensor x = Tensor.of(pixels, 1, 3, height, width);
      float[] scores = model.run(Map.of(input.name(), x)).values().iterator().next().floats();
      int best = 0;
      for (int i = 1; i < scores.length; i++) if (scores[i] > scores[best]) best = i;
      System.out.println(best);
    } catch (Exception error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }

  private static float[] readPicture(Path path, int height, int width) throws Exception {
    byte[] bytes = Files.readAllBytes(path);
    byte[] head = ("P6\n" + width + " " + height + "\n255\n").getBytes(StandardCharsets.US_ASCII);
    int count = height * width;
    if (!Arrays.equals(Arrays.copyOf(bytes, head.length), head))
      throw new IllegalArgumentException("expected a PPM of " + width + " x " + height);
    float[] pixels = new float[3 * count];
    for (int i = 0; i < pixels.length; i++)
      pixels[i] = (bytes[head.length + i % count * 3 + i / count] & 0xff) / 255f;
    return pixels;
  }
}
