import hagane.HaganeException;
import hagane.Model;
import hagane.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** What the Java binding promises, beside its example: Bindings BUILD GUESTS DAMAGED... */
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

  private static Tensor bytes(int type, int size, int... bytes) {
    ByteBuffer data = ByteBuffer.allocateDirect(bytes.length).order(ByteOrder.nativeOrder());
    for (int i = 0; i < bytes.length; i++) data.put(i, (byte) bytes[i]);
    return new Tensor(type, new long[] {size}, data);
  }

  private static Map<String, Tensor> guests(String name, Tensor tensor) {
    Map<String, Tensor> feed = new HashMap<>();
    feed.put("x", Tensor.of(new float[] {1, 2, 3, Float.NaN, 5, 6}, 2, 3));
    feed.put("ids", Tensor.of(new long[] {0, 9, 4}, 3));
    feed.put("flag", bytes(9, 2, 1, 0));
    feed.put("half", bytes(10, 2, 0, 0x3c, 0, 0xc0));
    feed.put("gr\u00f6\u00dfe\ud83d\ude00", bytes(13, 1, 255, 255, 255, 255, 255, 255, 255, 255));
    feed.put(name, tensor);
    return feed;
  }

  private static void mixed(Path build) {
    try (Model model = new Model(build)) {
      expect(model.inputs().get(4).name().equals("gr\u00f6\u00dfe\ud83d\ude00"), "names");
      Map<String, Tensor> found = model.run(guests("flag", bytes(9, 2, 1, 0)));
      float[] y = found.get("y").floats();
      expect(y.length == 4 && y[0] == y[0] && y[2] != y[2], "y");
      expect(found.get("unflagged").data().get(1) == 1, "truth values");
      expect((found.get("halved").data().get(1) & 0xff) == 0xbc, "halves");
      expect(found.get("l\u00e4nge\ud83d\ude00").data().getLong(0) == -1, "the largest number");
      Tensor none = Tensor.of(new float[0], 0, 3);
      expect(model.run(guests("x", none)).get("y").shape()[0] == 0, "no rows");
      Tensor[] wrong = {
        Tensor.of(new float[15], 5, 3), Tensor.of(new float[8], 2, 4), Tensor.of(new float[3], 3),
        Tensor.of(new float[3], -1, -3), Tensor.of(new float[1], 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
        Tensor.of(new long[3], 1, 3), null
      };
      String[] told = {
        "axis 0 is 5, expected 0 to 4", "axis 1 is 4, expected 3", "expected 2 axes, got 1", "axis 0 is -1",
        "expected 16 axes at most, got 17", "expected float32, got int64", "input 'x': expected a tensor, got null"
      };
      for (int i = 0; i < wrong.length; i++) {
        Map<String, Tensor> feed = guests("x", wrong[i]);
        fails(told[i], () -> model.run(feed));
      }
      fails("there is no input 'z'; the model has: x, ids", () -> model.run(guests("z", none)));
      fails("expected the name of an input, got null", () -> model.run(guests(null, none)));
      fails("'look up'", () -> model.run(guests("ids", Tensor.of(new long[] {10}, 1))));
      Map<String, Tensor> missing = guests("x", none);
      missing.remove("half");
      fails("input 'half' is missing", () -> model.run(missing));
    }
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
    mixed(Path.of(arguments[1]));
    for (String folder : Arrays.copyOfRange(arguments, 2, arguments.length))
      fails(folder, () -> new Model(Path.of(folder)));
    Thread running = new Thread(() -> {
      try {
        for (int k = 0; k < 100; k++) model.run(Map.of("x", x));
      } catch (HaganeException error) {
        expect(error.getMessage().equals("the model is closed"), error.getMessage());
      }
    });
    running.start();
    model.close();
    model.close();
    running.join();
    fails("the model is closed", () -> model.run(Map.of("x", x)));
    System.out.println("fine");
  }
}
