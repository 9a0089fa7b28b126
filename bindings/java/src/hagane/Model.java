package hagane;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A build that is open; threads may run it at once.
 *
 * <p>The library of {@code jni/hagane_jni.c} is found by the property {@code hagane.jni}, which has its
 * path, or as {@code hagane_jni} on {@code java.library.path}.
 */
public final class Model implements AutoCloseable {
  static {
    String path = System.getProperty("hagane.jni");
    if (path != null) System.load(path);
    else System.loadLibrary("hagane_jni");
  }

  private static final Pattern LIBRARY = Pattern.compile("\"library\": \"([^\"/]+)\"");
  private static final Pattern SUM = Pattern.compile("\"library_sha256\": \"([0-9a-f]{64})\"");

  private static final int AXES = 16;

  private final ReadWriteLock lock = new ReentrantReadWriteLock();
  private long handle;
  private final List<Argument> inputs, outputs;

  /**
   * Opens a build.
   *
   * @throws HaganeException it is damaged, or for other processors
   */
  public Model(Path folder) {
    handle = open(text(library(folder).toAbsolutePath().toString()), text(folder.toString()));
    inputs = describe(false);
    outputs = describe(true);
  }

  public List<Argument> inputs() {
    return inputs;
  }

  public List<Argument> outputs() {
    return outputs;
  }

  /**
   * Returns all outputs by name.
   *
   * @throws HaganeException the inputs do not fit the model
   */
  public Map<String, Tensor> run(Map<String, Tensor> given) {
    int n = given.size(), i = 0;
    byte[][] names = new byte[n][];
    int[] types = new int[n];
    long[][] shapes = new long[n][];
    ByteBuffer[] data = new ByteBuffer[n];
    for (Map.Entry<String, Tensor> each : given.entrySet()) {
      if (each.getKey() == null || each.getKey().indexOf(0) >= 0)
        throw new IllegalArgumentException("expected the name of an input, got " + each.getKey());
      if (each.getValue() == null)
        throw new IllegalArgumentException("input '" + each.getKey() + "': expected a tensor, got null");
      names[i] = text(each.getKey());
      types[i] = each.getValue().type();
      shapes[i] = each.getValue().shape();
      if (shapes[i].length > AXES)
        throw new HaganeException(
            4, "input '" + each.getKey() + "': expected " + AXES + " axes at most, got " + shapes[i].length);
      data[i++] = each.getValue().data();
    }
    lock.readLock().lock();
    try {
      if (handle == 0) throw new HaganeException(1, "the model is closed");
      Map<String, Tensor> found = new LinkedHashMap<>();
      Object[] results = run(handle, names, types, shapes, data);
      for (int k = 0; k < outputs.size(); k++) {
        ByteBuffer bytes = (ByteBuffer) results[2 * k + 1];
        Argument output = outputs.get(k);
        bytes.order(ByteOrder.nativeOrder());
        found.put(output.name(), new Tensor(output.type(), (long[]) results[2 * k], bytes));
      }
      return found;
    } finally {
      lock.readLock().unlock();
    }
  }

  /** Waits for runs to end; then none can be begun. */
  @Override
  public void close() {
    lock.writeLock().lock();
    try {
      if (handle != 0) close(handle);
      handle = 0;
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** Returns the library of a build, which is whole: loading one that was cut off ends the process. */
  private static Path library(Path folder) {
    Path path = folder.resolve("manifest.json");
    try {
      String text = new String(Files.readAllBytes(path), StandardCharsets.UTF_8);
      Matcher name = LIBRARY.matcher(text), sum = SUM.matcher(text);
      if (!name.find() || !sum.find()) throw new HaganeException(3, "'" + path + "' names no library");
      Path library = folder.resolve(name.group(1));
      if (name.group(1).endsWith(".a"))
        throw new HaganeException(2, "'" + library + "' is an archive: build the model with --shared");
      if (!sumOf(Files.readAllBytes(library)).equals(sum.group(1)))
        throw new HaganeException(3, "'" + library + "' is damaged, or of another build");
      return library;
    } catch (IOException error) {
      throw new HaganeException(
          2, "'" + path + "' cannot be read: " + error + "; expected a folder that hagane build wrote");
    }
  }

  private static String sumOf(byte[] content) {
    try {
      StringBuilder found = new StringBuilder();
      for (byte each : MessageDigest.getInstance("SHA-256").digest(content))
        found.append(String.format("%02x", each & 0xff));
      return found.toString();
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // every Java has it
    }
  }

  /** Returns a text as C has it; Java's own form for C writes some letters in another way. */
  private static byte[] text(String text) {
    return (text + "\0").getBytes(StandardCharsets.UTF_8);
  }

  private List<Argument> describe(boolean ofOutputs) {
    List<Argument> found = new ArrayList<>();
    byte[][] names = names(handle, ofOutputs);
    for (int i = 0; i < names.length; i++) {
      long[] numbers = describe(handle, ofOutputs, i);
      int rank = (numbers.length - 1) / 2;
      long[] least = new long[rank], most = new long[rank];
      System.arraycopy(numbers, 1, least, 0, rank);
      System.arraycopy(numbers, 1 + rank, most, 0, rank);
      found.add(new Argument(new String(names[i], StandardCharsets.UTF_8), (int) numbers[0], least, most));
    }
    return List.copyOf(found);
  }

  private static native long open(byte[] library, byte[] folder);

  private static native void close(long handle);

  private static native byte[][] names(long handle, boolean ofOutputs);

  private static native long[] describe(long handle, boolean ofOutputs, int index);

  /** Returns shape and elements of each output, in turn. */
  private static native Object[] run(
      long handle, byte[][] names, int[] types, long[][] shapes, ByteBuffer[] data);
}
