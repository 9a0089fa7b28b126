package hagane;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
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

  private final ReadWriteLock lock = new ReentrantReadWriteLock();
  private long handle;
  private final List<Argument> inputs, outputs;

  /**
   * Opens a build.
   *
   * @throws HaganeException it is damaged, or for other processors
   */
  public Model(Path folder) {
    handle = open(library(folder).toAbsolutePath().toString(), folder.toString());
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
    String[] names = new String[n];
    int[] types = new int[n];
    long[][] shapes = new long[n][];
    ByteBuffer[] data = new ByteBuffer[n];
    for (Map.Entry<String, Tensor> each : given.entrySet()) {
      names[i] = each.getKey();
      types[i] = each.getValue().type();
      shapes[i] = each.getValue().shape();
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

  private static Path library(Path folder) {
    Path path = folder.resolve("manifest.json");
    try {
      Matcher found = LIBRARY.matcher(Files.readString(path));
      if (found.find()) return folder.resolve(found.group(1));
    } catch (IOException error) {
      throw new HaganeException(
          2, "'" + path + "' cannot be read: " + error + "; expected a folder that hagane build wrote");
    }
    throw new HaganeException(3, "'" + path + "' names no library");
  }

  private List<Argument> describe(boolean ofOutputs) {
    List<Argument> found = new ArrayList<>();
    String[] names = names(handle, ofOutputs);
    for (int i = 0; i < names.length; i++) {
      long[] numbers = describe(handle, ofOutputs, i);
      int rank = (numbers.length - 1) / 2;
      long[] least = new long[rank], most = new long[rank];
      System.arraycopy(numbers, 1, least, 0, rank);
      System.arraycopy(numbers, 1 + rank, most, 0, rank);
      found.add(new Argument(names[i], (int) numbers[0], least, most));
    }
    return List.copyOf(found);
  }

  private static native long open(String library, String folder);

  private static native void close(long handle);

  private static native String[] names(long handle, boolean ofOutputs);

  private static native long[] describe(long handle, boolean ofOutputs, int index);

  /** Returns shape and elements of each output, in turn. */
  private static native Object[] run(
      long handle, String[] names, int[] types, long[][] shapes, ByteBuffer[] data);
}
