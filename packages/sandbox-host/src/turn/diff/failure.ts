/** Why a comparison ended without a result, in the comparing process. */
export class DiffFailure extends Error {
  override readonly name = "DiffFailure";
  /** `limit`: the trees are larger than a comparison may be. `deadline`: it took too long. `io`: a tree cannot be read. */
  readonly kind: "limit" | "deadline" | "io";

  constructor(kind: DiffFailure["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}
