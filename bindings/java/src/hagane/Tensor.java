package hagane;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Numbers of one type with a shape. */
public final class Tensor {
  /** Types by ONNX's numbers, and the bytes of an element; 0 where there is no type of numbers. */
  private static final int[] BYTES = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2};

  public static final int FLOAT32 = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7, FLOAT64 = 11;

  private final int type;
  private final long[] shape;
  private final ByteBuffer data;

  /**
   * A tensor over memory outside of Java's heap.
   *
   * @param type ONNX's number of the element type
   * @param shape sizes
   * @param data a direct buffer of the elements in the machine's byte order
   */
  public Tensor(int type, long[] shape, ByteBuffer data) {
    if (type < 0 || type >= BYTES.length || BYTES[type] == 0)
      throw new IllegalArgumentException("expected ONNX's number of a type of numbers, got " + type);
    long bytes = BYTES[type];
    for (long size : shape) bytes = Math.multiplyExact(bytes, size);
    if (!data.isDirect() || data.capacity() != bytes)
      throw new IllegalArgumentException(
          "expected a direct buffer of " + bytes + " bytes, got " + data.capacity()
              + (data.isDirect() ? "" : " that are not direct"));
    this.type = type;
    this.shape = shape.clone();
    this.data = data;
  }

  /** Returns a tensor of floats, copied. */
  public static Tensor of(float[] values, long... shape) {
    ByteBuffer data = direct(values.length * 4L);
    data.asFloatBuffer().put(values);
    return new Tensor(FLOAT32, shape, data);
  }

  /** Returns a tensor of 64-bit integers, copied. */
  public static Tensor of(long[] values, long... shape) {
    ByteBuffer data = direct(values.length * 8L);
    data.asLongBuffer().put(values);
    return new Tensor(INT64, shape, data);
  }

  static ByteBuffer direct(long bytes) {
    return ByteBuffer.allocateDirect(Math.toIntExact(bytes)).order(ByteOrder.nativeOrder());
  }

  public int type() {
    return type;
  }

  public long[] shape() {
    return shape.clone();
  }

  /** Returns the elements as bytes; what is written there changes the tensor. */
  public ByteBuffer data() {
    ByteBuffer found = data.duplicate().order(ByteOrder.nativeOrder());
    found.clear();
    return found;
  }

  /** Returns the elements of a tensor of floats. */
  public float[] floats() {
    if (type != FLOAT32) throw new IllegalStateException("the elements have type " + type + ", not float32");
    float[] found = new float[data.capacity() / 4];
    data().asFloatBuffer().get(found);
    return found;
  }

  /** Returns the elements of a tensor of 64-bit integers. */
  public long[] longs() {
    if (type != INT64) throw new IllegalStateException("the elements have type " + type + ", not int64");
    long[] found = new long[data.capacity() / 8];
    data().asLongBuffer().get(found);
    return found;
  }
}
