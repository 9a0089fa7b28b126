using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

// Runs models that `hagane build` compiled.
//
//   using (var model = new Hagane.Model("net.hagane")) {
//     var scores = model.Run(new Dictionary<string, Hagane.Tensor> {
//       ["x"] = Hagane.Tensor.Of(new long[] { 1, 3 }, new[] { 0.5f, 1f, 2f }) })["y"].To<float>();
//   }
namespace Hagane {
  /// <summary>A call that failed: its code, as hagane.h has them, and hagane's message.</summary>
  public sealed class HaganeException : Exception {
    public int Code { get; }
    public HaganeException(int code, string message) : base(message) { Code = code; }
  }

  /// <summary>Element types, by ONNX's numbers; 16-bit floats are given as their bits.</summary>
  public enum ElementType {
    Float = 1, UInt8 = 2, Int8 = 3, UInt16 = 4, Int16 = 5, Int32 = 6, Int64 = 7, Bool = 9,
    Float16 = 10, Double = 11, UInt32 = 12, UInt64 = 13, BFloat16 = 16
  }

  /// <summary>Numbers of one type with a shape, in row-major order.</summary>
  public sealed class Tensor {
    static readonly Dictionary<Type, ElementType> known = new Dictionary<Type, ElementType> {
      [typeof(float)] = ElementType.Float, [typeof(byte)] = ElementType.UInt8,
      [typeof(sbyte)] = ElementType.Int8, [typeof(ushort)] = ElementType.UInt16,
      [typeof(short)] = ElementType.Int16, [typeof(int)] = ElementType.Int32,
      [typeof(long)] = ElementType.Int64, [typeof(bool)] = ElementType.Bool,
      [typeof(double)] = ElementType.Double, [typeof(uint)] = ElementType.UInt32,
      [typeof(ulong)] = ElementType.UInt64
    };

    public long[] Shape { get; }
    public ElementType Type { get; }
    /// <summary>The elements as they lie in memory.</summary>
    public byte[] Bytes { get; }

    /// <exception cref="ArgumentException">The bytes are not as many as the shape needs.</exception>
    public Tensor(long[] shape, ElementType type, byte[] bytes) {
      long count = 1;
      foreach (var size in shape) {
        if (size < 0) throw new ArgumentException("expected sizes of 0 or more, got " + size);
        count = checked(count * size);
      }
      long want = checked(count * SizeOf(type));
      if (bytes.LongLength != want)
        throw new ArgumentException(
            $"expected {want} bytes for [{string.Join(", ", shape)}] of {type}, got {bytes.LongLength}");
      Shape = (long[])shape.Clone();
      Type = type;
      Bytes = bytes;
    }

    /// <summary>Returns a tensor of a copy of numbers.</summary>
    public static Tensor Of<T>(long[] shape, T[] values) where T : struct {
      if (!known.TryGetValue(typeof(T), out var type))
        throw new ArgumentException("expected numbers, got " + typeof(T).Name);
      var bytes = new byte[Buffer.ByteLength(values)];
      Buffer.BlockCopy(values, 0, bytes, 0, bytes.Length);
      return new Tensor(shape, type, bytes);
    }

    /// <summary>Returns the elements, one after the other.</summary>
    public T[] To<T>() where T : struct {
      if (!known.TryGetValue(typeof(T), out var type) || type != Type)
        throw new InvalidOperationException($"expected elements of {Type}, asked for {typeof(T).Name}");
      var values = new T[Bytes.Length / SizeOf(Type)];
      Buffer.BlockCopy(Bytes, 0, values, 0, Bytes.Length);
      return values;
    }

    internal static int SizeOf(ElementType type) {
      switch (type) {
        case ElementType.UInt8: case ElementType.Int8: case ElementType.Bool: return 1;
        case ElementType.UInt16: case ElementType.Int16:
        case ElementType.Float16: case ElementType.BFloat16: return 2;
        case ElementType.Float: case ElementType.Int32: case ElementType.UInt32: return 4;
        case ElementType.Int64: case ElementType.UInt64: case ElementType.Double: return 8;
        default: throw new ArgumentException("expected a type of numbers, got " + (int)type);
      }
    }
  }

  /// <summary>An input or output, and the sizes that the model was built for.</summary>
  public sealed class Argument {
    public string Name { get; internal set; }
    public ElementType Type { get; internal set; }
    public long[] Least { get; internal set; }
    public long[] Most { get; internal set; }
  }

  /// <summary>A build that is open; threads may run it at once.</summary>
  public sealed class Model : IDisposable {
    const int Axes = 16;

    [StructLayout(LayoutKind.Sequential)]
    struct NativeTensor {
      public IntPtr Name;
      public int Type, Rank;
      [MarshalAs(UnmanagedType.ByValArray, SizeConst = Axes)] public long[] Shape;
      public IntPtr Data;
      public UIntPtr Bytes;
    }

    [StructLayout(LayoutKind.Sequential)]
    struct NativeInfo {
      public IntPtr Name;
      public int Type, Rank;
      [MarshalAs(UnmanagedType.ByValArray, SizeConst = Axes)] public long[] Least;
      [MarshalAs(UnmanagedType.ByValArray, SizeConst = Axes)] public long[] Most;
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate int OpenFunction(byte[] folder, IntPtr options, out IntPtr model);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate void CloseFunction(IntPtr model);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate UIntPtr CountFunction(IntPtr model);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate int InfoFunction(IntPtr model, UIntPtr index, out NativeInfo info);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate int RunFunction(IntPtr model, IntPtr inputs, UIntPtr inputCount, IntPtr outputs, UIntPtr outputCount);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate void ReleaseFunction(IntPtr model, IntPtr outputs, UIntPtr count);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate IntPtr MessageFunction();

    [DllImport("libdl.so.2")] static extern IntPtr dlopen(byte[] path, int flags);
    [DllImport("libdl.so.2")] static extern IntPtr dlsym(IntPtr library, string name);
    [DllImport("libdl.so.2")] static extern IntPtr dlerror();
    const int Now = 2;

    // Closes the model when it is disposed of, or unreachable, and no run goes on.
    sealed class Handle : SafeHandle {
      readonly CloseFunction close;
      public Handle(IntPtr model, CloseFunction close) : base(IntPtr.Zero, true) {
        this.close = close;
        SetHandle(model);
      }
      public override bool IsInvalid => handle == IntPtr.Zero;
      protected override bool ReleaseHandle() {
        close(handle);
        return true;
      }
    }

    readonly RunFunction run;
    readonly ReleaseFunction release;
    readonly MessageFunction message;
    readonly Handle handle;

    public IReadOnlyList<Argument> Inputs { get; }
    public IReadOnlyList<Argument> Outputs { get; }

    /// <param name="folder">A folder that hagane build wrote.</param>
    /// <exception cref="HaganeException">It cannot be opened.</exception>
    public Model(string folder) {
      if (folder == null) throw new ArgumentNullException(nameof(folder));
      var library = dlopen(Text(LibraryOf(folder)), Now);
      if (library == IntPtr.Zero) throw new HaganeException(2, TextAt(dlerror()));
      message = Function<MessageFunction>(library, "hagane_message");
      var close = Function<CloseFunction>(library, "hagane_close");
      run = Function<RunFunction>(library, "hagane_run");
      release = Function<ReleaseFunction>(library, "hagane_release");
      Check(Function<OpenFunction>(library, "hagane_open")(Text(folder), IntPtr.Zero, out var model));
      handle = new Handle(model, close);
      Inputs = Describe(model, Function<CountFunction>(library, "hagane_inputs"),
                        Function<InfoFunction>(library, "hagane_input"));
      Outputs = Describe(model, Function<CountFunction>(library, "hagane_outputs"),
                         Function<InfoFunction>(library, "hagane_output"));
    }

    /// <summary>Closes the model, once the runs of other threads have ended; none can be begun.</summary>
    public void Dispose() { handle.Dispose(); }

    /// <summary>Returns a tensor for each output by name, or for each of some names.</summary>
    /// <exception cref="HaganeException">The model cannot be run with these inputs.</exception>
    public IDictionary<string, Tensor> Run(IDictionary<string, Tensor> inputs, IList<string> names = null) {
      if (inputs == null) throw new ArgumentNullException(nameof(inputs));
      if (names == null) {
        names = new List<string>();
        foreach (var each in Outputs) names.Add(each.Name);
      }
      bool held = false;
      try {
        handle.DangerousAddRef(ref held);
        return Run(handle.DangerousGetHandle(), inputs, names);
      } catch (ObjectDisposedException) {
        throw new ObjectDisposedException("Hagane.Model", "the model is closed");
      } finally {
        if (held) handle.DangerousRelease();
      }
    }

    IDictionary<string, Tensor> Run(IntPtr model, IDictionary<string, Tensor> inputs, IList<string> names) {
      int size = Marshal.SizeOf(typeof(NativeTensor));
      var held = new List<GCHandle>();
      var texts = new List<IntPtr>();
      var from = Marshal.AllocHGlobal(size * Math.Max(1, inputs.Count));
      var into = Marshal.AllocHGlobal(size * Math.Max(1, names.Count));
      try {
        int at = 0;
        foreach (var pair in inputs) {
          if (pair.Value == null) throw new ArgumentException($"input '{pair.Key}': expected a tensor, got null");
          if (pair.Value.Shape.Length > Axes)
            throw new ArgumentException($"input '{pair.Key}': expected {Axes} axes at most, got {pair.Value.Shape.Length}");
          var pinned = GCHandle.Alloc(pair.Value.Bytes, GCHandleType.Pinned);
          held.Add(pinned);
          var shape = new long[Axes];
          pair.Value.Shape.CopyTo(shape, 0);
          Put(from + size * at++, pair.Key, (int)pair.Value.Type, pair.Value.Shape.Length, shape,
              pinned.AddrOfPinnedObject(), pair.Value.Bytes.Length, texts);
        }
        for (int i = 0; i < names.Count; i++)
          Put(into + size * i, names[i], 0, 0, new long[Axes], IntPtr.Zero, 0, texts);
        Check(run(model, from, (UIntPtr)inputs.Count, into, (UIntPtr)names.Count));
        try {
          var found = new Dictionary<string, Tensor>();
          for (int i = 0; i < names.Count; i++) {
            var made = (NativeTensor)Marshal.PtrToStructure(into + size * i, typeof(NativeTensor));
            var bytes = new byte[checked((int)made.Bytes.ToUInt64())];
            if (bytes.Length > 0) Marshal.Copy(made.Data, bytes, 0, bytes.Length);
            var shape = new long[made.Rank];
            Array.Copy(made.Shape, shape, made.Rank);
            found[names[i]] = new Tensor(shape, (ElementType)made.Type, bytes);
          }
          return found;
        } finally {
          release(model, into, (UIntPtr)names.Count);
        }
      } finally {
        foreach (var pinned in held) pinned.Free();
        foreach (var text in texts) Marshal.FreeHGlobal(text);
        Marshal.FreeHGlobal(from);
        Marshal.FreeHGlobal(into);
      }
    }

    static void Put(IntPtr at, string name, int type, int rank, long[] shape, IntPtr data, long bytes, List<IntPtr> texts) {
      if (name == null || name.IndexOf('\0') >= 0)
        throw new ArgumentException("expected the name of an input or output, got " + (name ?? "null").Replace("\0", "\\0"));
      var text = Text(name);
      var place = Marshal.AllocHGlobal(text.Length);
      texts.Add(place);
      Marshal.Copy(text, 0, place, text.Length);
      var made = new NativeTensor { Name = place, Type = type, Rank = rank, Shape = shape, Data = data, Bytes = (UIntPtr)(ulong)bytes };
      Marshal.StructureToPtr(made, at, false);
    }

    List<Argument> Describe(IntPtr model, CountFunction count, InfoFunction info) {
      var found = new List<Argument>();
      for (ulong i = 0; i < count(model).ToUInt64(); i++) {
        Check(info(model, (UIntPtr)i, out var told));
        var least = new long[told.Rank];
        var most = new long[told.Rank];
        Array.Copy(told.Least, least, told.Rank);
        Array.Copy(told.Most, most, told.Rank);
        found.Add(new Argument { Name = TextAt(told.Name), Type = (ElementType)told.Type, Least = least, Most = most });
      }
      return found;
    }

    void Check(int code) {
      if (code != 0) throw new HaganeException(code, TextAt(message()));
    }

    static T Function<T>(IntPtr library, string name) where T : class {
      var found = dlsym(library, name);
      if (found == IntPtr.Zero) throw new HaganeException(3, $"the library has no function {name}");
      return (T)(object)Marshal.GetDelegateForFunctionPointer(found, typeof(T));
    }

    static string LibraryOf(string folder) {
      var path = Path.Combine(folder, "manifest.json");
      string text;
      try {
        text = File.ReadAllText(path);
      } catch (Exception error) when (error is IOException || error is UnauthorizedAccessException) {
        throw new HaganeException(2, $"'{path}' cannot be read: {error.Message}; expected a folder that hagane build wrote");
      }
      var name = Regex.Match(text, "\"library\"\\s*:\\s*\"([^\"/\\\\]+)\"");
      var sum = Regex.Match(text, "\"library_sha256\"\\s*:\\s*\"([0-9a-f]{64})\"");
      if (!name.Success || !sum.Success) throw new HaganeException(3, $"'{path}' names no library");
      var library = Path.GetFullPath(Path.Combine(folder, name.Groups[1].Value));
      if (library.EndsWith(".a")) throw new HaganeException(2, $"'{library}' is an archive: build the model with --shared");
      // (The loader of a system maps files as they are: one that was cut off ends the process.)
      if (SumOf(library) != sum.Groups[1].Value)
        throw new HaganeException(3, $"'{library}' is damaged, or of another build");
      return library;
    }

    static string SumOf(string library) {
      try {
        using (var file = File.OpenRead(library))
        using (var sha = SHA256.Create())
          return BitConverter.ToString(sha.ComputeHash(file)).Replace("-", "").ToLowerInvariant();
      } catch (Exception error) when (error is IOException || error is UnauthorizedAccessException) {
        throw new HaganeException(2, $"'{library}' cannot be read: {error.Message}; build the model again");
      }
    }

    static byte[] Text(string text) { return Encoding.UTF8.GetBytes(text + "\0"); }

    static string TextAt(IntPtr at) {
      if (at == IntPtr.Zero) return "";
      int length = 0;
      while (Marshal.ReadByte(at, length) != 0) length++;
      var bytes = new byte[length];
      Marshal.Copy(at, bytes, 0, length);
      return Encoding.UTF8.GetString(bytes);
    }
  }
}
