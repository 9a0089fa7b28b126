import hagane.HaganeException;
import hagane.Model;
import hagane.Tensor;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/** What the Java binding promises, beside its example. */
final class Bindings {
  private static void expect(boolean condition, String what) {
    if (!condition) throw new AssertionError(what);
  }

  private static void fails(String text, Runnable run) {
    try {
      run.run();
    } catch (HaganeException | IllegalArgumentException error) {
      expect(error.getMessage().contains(text), error.getMessage());
      return;
    }
    throw new AssertionError("expected an error with '" + text + "'");
  }

  public static void main(String[] arguments) throws Exception {
    Model model = new Model(Path.of(arguments[0]));
    expect(model.inputs().get(0).name().equals("x"), "the input's name");
    expect(Arrays.equals(model.inputs().get(0).most(), new long[] {1, 3, 6, 8}), "the input's sizes");
    Tensor x = Tensor.of(new float[144], 1, 3, 6, 8);
    float[] y = model.run(Map.of("x", x)).get("y").floats();
    expect(y.length == 10, "the output");
    Thread[] threads = new Thread[4];
    boolean[] same = new boolean[threads.length];
    for (int i = 0; i < threads.length; i++) {
      int own = i;
      threads[i] = new Thread(() -> {
        boolean all = true;
        for (int k = 0; k < 50; k++) all &= Arrays.equals(model.run(Map.of("x", x)).get("y").floats(), y);
        same[own] = all;
      });
      threads[i].start();
    }
    for (int i = 0; i < threads.length; i++) {
      threads[i].join();
      expect(same[i], "threads");
    }
    Tensor wide = Tensor.of(new float[162], 1, 3, 6, 9);
    fails("input 'x': axis 3 is 9, expected 8", () -> model.run(Map.of("x", wide)));
    fails("there is no input 'z'; the model has: x", () -> model.run(Map.of("z", x)));
    fails("expected a direct buffer of 8 bytes, got 4", () -> Tensor.of(new float[1], 2));
    model.close();
    model.close();
    fails("the model is closed", () -> model.run(Map.of("x", x)));
    System.out.println("fine");
  }
}
