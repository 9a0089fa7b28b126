// Classifies a picture: Classify BUILD PICTURE.ppm
//
// The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1.
using System;
using System.Collections.Generic;
using System.IO;
using Hagane;

static class Classify {
  static float[] ReadPicture(string path, long height, long width) {
    var content = File.ReadAllBytes(path);
    var words = new List<string>();
    int at = 0;
    while (words.Count < 4 && at < content.Length) {
      int from = at;
      while (at < content.Length && !char.IsWhiteSpace((char)content[at])) at++;
      words.Add(System.Text.Encoding.ASCII.GetString(content, from, at - from));
      at++;
    }
    if (words.Count < 4 || words[0] != "P6" || words[1] != width.ToString() || words[2] != height.ToString() ||
        words[3] != "255" || content.Length - at < 3 * width * height)
      throw new InvalidDataException($"expected a PPM of {width} x {height}");
    var planes = new float[3 * width * height];
    for (int i = 0; i < planes.Length; i++) planes[i % 3 * (planes.Length / 3) + i / 3] = content[at + i] / 255f;
    return planes;
  }

  static int Main(string[] arguments) {
    if (arguments.Length != 2) {
      Console.Error.WriteLine("usage: Classify BUILD PICTURE.ppm");
      return 2;
    }
    try {
      using (var model = new Model(arguments[0])) {
        var input = model.Inputs[0];
        long height = input.Least[2], width = input.Least[3];
        var picture = Tensor.Of(new[] { 1, 3, height, width }, ReadPicture(arguments[1], height, width));
        var results = model.Run(new Dictionary<string, Tensor> { [input.Name] = picture });
        var scores = results[model.Outputs[0].Name].To<float>();
        int best = 0;
        for (int i = 0; i < scores.Length; i++) best = scores[i] > scores[best] ? i : best;
        Console.WriteLine(best);
        return 0;
      }
    } catch (Exception error) when (error is HaganeException || error is IOException || error is InvalidDataException) {
      Console.Error.WriteLine(error.Message);
      return 1;
    }
  }
}
