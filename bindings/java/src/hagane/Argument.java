package hagane;

/** An input or output: ONNX's number of its type, and the least and most of each size. */
public final class Argument {
  private final String name;
  private final int type;
  private final long[] least, most;

  Argument(String name, int type, long[] least, long[] most) {
    this.name = name;
    this.type = type;
    this.least = least;
    this.most = most;
  }

  public String name() {
    return name;
  }

  public int type() {
    return type;
  }

  public long[] least() {
    return least.clone();
  }

  public long[] most() {
    return most.clone();
  }
}
