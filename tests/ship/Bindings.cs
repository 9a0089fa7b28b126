// What the C# binding promises, beside its example.
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
    model.Dispose();
    model.Dispose();
    Fails<ObjectDisposedException>("the model is closed", () => model.Run(Feed("x", x)));
    Console.WriteLine("fine");
  }
}
