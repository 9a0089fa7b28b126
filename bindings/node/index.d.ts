export type Elements =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

export interface Tensor {
  shape: number[];
  data: Elements;
}

/** An input or output, and the sizes that the model was built for. */
export interface Info {
  name: string;
  type: number;
  least: number[];
  most: number[];
}

/** A build that is open; runs do not block. */
export class Model {
  constructor(folder: string, options?: { threads?: number });
  readonly inputs: Info[];
  readonly outputs: Info[];
  run(feed: Record<string, Tensor>): Promise<Record<string, Tensor>>;
  close(): void;
}
