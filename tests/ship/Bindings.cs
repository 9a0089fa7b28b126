// What the C# binding promises, beside its example: bindings BUILD GUESTS DAMAGED…
using System;
using System.Collections.Generic;
using System.Threading;
using Hagane;

static class Bindings {
  static void Expect(bool condition, string what) {
    if (!condition) throw new Exception(what);
  }

  static T Fails<T>(string text, Action action) where T : Exception {
    try {
      action();
    } catch (T error) {
      Expect(error.Message.Contains(text), "expected '" + text + "', got '" + error.Message + "'");
      return error;
    }
    throw new Exception("expected an error with '" + text + "'");
  }

  static Dictionary<string, Tensor> Feed(string name, Tensor tensor) {
    return new Dictionary<string, Tensor> { [name] = tensor };
  }

  static void Mixed(string build) {
    var model = new Model(build);
    Func<Dictionary<string, Tensor>> guests = () => new Dictionary<string, Tensor> {
      ["x"] = Tensor.Of(new long[] { 2, 3 }, new[] { 1f, 2f, 3f, float.NaN, 5f, 6f }),
      ["ids"] = Tensor.Of(new long[] { 3 }, new[] { 0L, 9L, 4L }),
      ["flag"] = Tensor.Of(new long[] { 2 }, new[] { true, false }),
      ["half"] = new Tensor(new long[] { 2 }, ElementType.Float16, new byte[] { 0, 0x3c, 0, 0xc0 }),
      ["größe😀"] = Tensor.Of(new long[] { 1 }, new[] { ulong.MaxValue }),
    };
    Func<string, Tensor, Action> with = (name, tensor) => () => {
      var feed = guests();
      feed[name] = tensor;
      model.Run(feed);
    };
    Func<long[], Tensor> rows = shape => {
      long count = 1;
      foreach (var size in shape) count *= size;
      return Tensor.Of(shape, new float[count]);
    };
    Expect(model.Inputs[4].Name == "größe😀", "names");
    var found = model.Run(guests());
    var y = found["y"].To<float>();
    Expect(y.Length == 4 && !float.IsNaN(y[0]) && float.IsNaN(y[2]), "y");
    Expect(!found["unflagged"].To<bool>()[0] && found["unflagged"].To<bool>()[1], "truth values");
    Expect(found["halved"].Bytes[1] == 0xbc && found["länge😀"].To<ulong>()[0] == ulong.MaxValue, "numbers");
    Fails<HaganeException>("input 'x': axis 0 is 5, expected 0 to 4", with("x", rows(new long[] { 5, 3 })));
    Fails<HaganeException>("input 'x': axis 1 is 4, expected 3", with("x", rows(new long[] { 2, 4 })));
    Fails<HaganeException>("input 'x': expected 2 axes, got 1", with("x", rows(new long[] { 3 })));
    Fails<ArgumentException>("expected 16 axes at most, got 17", with("x", rows(new long[] { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 })));
    Fails<ArgumentException>("expected sizes of 0 or more, got -1", () => Tensor.Of(new long[] { -1, 3 }, new float[3]));
    Fails<HaganeException>("input 'x': expected float32, got float64", with("x", Tensor.Of(new long[] { 1, 3 }, new double[3])));
    Fails<HaganeException>("there is no input 'z'; the model has: x, ids", with("z", rows(new long[] { 1 })));
    Fails<ArgumentException>("got x\\0", with("x\0", rows(new long[] { 1 })));
    Fails<ArgumentException>("input 'x': expected a tensor, got null", with("x", null));
    Fails<HaganeException>("'look up'", with("ids", Tensor.Of(new long[] { 1 }, new[] { 10L })));
    var missing = guests();
    missing.Remove("half");
    Fails<HaganeException>("input 'half' is missing", () => model.Run(missing));
    Fails<HaganeException>("there is no output 'q'", () => model.Run(guests(), new[] { "q" }));
    var none = guests();
    none["x"] = rows(new long[] { 0, 3 });
    Expect(string.Join(",", model.Run(none)["y"].Shape) == "0,2", "no rows");
  }

  static void Main(string[] arguments) {
    var model = new Model(arguments[0]);
    var input = model.Inputs[0];
    Expect(model.Inputs.Count == 1 && input.Name == "x" && input.Type == ElementType.Float, "inputs");
    Expect(string.Join(",", input.Least) == "1,3,6,8" && string.Join(",", input.Most) == "1,3,6,8", "sizes");
    var numbers = new float[144];
    for (int i = 0; i < 144; i++) numbers[i] = i / 144f;
    var x = Tensor.Of(new long[] { 1, 3, 6, 8 }, numbers);
    var y = model.Run(Feed("x", x))["y"];
    Expect(string.Join(",", y.Shape) == "1,10" && y.To<float>().Length == 10, "the output");
    int same = 0;
    var threads = new List<Thread>();
    for (int k = 0; k < 4; k++) {
      var thread = new Thread(() => {
        for (int i = 0; i < 20; i++) {
          var found = model.Run(Feed("x", x), new[] { "y" })["y"];
          if (Convert.ToBase64String(found.Bytes) == Convert.ToBase64String(y.Bytes)) Interlocked.Increment(ref same);
        }
      });
      threads.Add(thread);
      thread.Start();
    }
    foreach (var thread in threads) thread.Join();
    Expect(same == 80, "threads");
    var wrong = Tensor.Of(new long[] { 1, 3, 6, 9 }, new float[162]);
    var error = Fails<HaganeException>("input 'x': axis 3 is 9, expected 8", () => model.Run(Feed("x", wrong)));
    Expect(error.Code == 4, "the code of a shape");
    Fails<HaganeException>("there is no input 'z'; the model has: x", () => model.Run(Feed("z", x)));
    Fails<ArgumentException>("expected 8 bytes for [2] of Float, got 4", () => Tensor.Of(new long[] { 2 }, new float[1]));
    Fails<InvalidOperationException>("expected elements of Float, asked for Int32", () => y.To<int>());
    GC.Collect();
    Mixed(arguments[1]);
    for (int i = 2; i < arguments.Length; i++) {
      var folder = arguments[i];
      Fails<HaganeException>(folder, () => new Model(folder));
    }
    threads.Clear();
    for (int k = 0; k < 4; k++) {
      var thread = new Thread(() => {
        try {
          for (int i = 0; i < 100; i++) model.Run(Feed("x", x));
        } catch (ObjectDisposedException) { // closed meanwhile
        }
      });
      threads.Add(thread);
      thread.Start();
    }
    model.Dispose();
    model.Dispose();
    foreach (var thread in threads) thread.Join();
    Fails<ObjectDisposedException>("the model is closed", () => model.Run(Feed("x", x)));
    Console.WriteLine("fine");
  }
}
