/** A defect that is put into the source: one text in one file is replaced by another. */
export interface Mutation {
  /** The defect in words. */
  readonly name: string
  readonly file: string
  /** Occurs exactly once in the file. */
  readonly from: string
  /** Passes the type checks. */
  readonly to: string
  /** Test files or folders that should find it. */
  readonly tests: readonly string[]
  /** Given where only the long suite finds it, which also runs whole what the fast suite runs in part. */
  readonly suite?: 'long'
}

/** Names a mutation. */
export function mutation(name: string, rest: Omit<Mutation, 'name'>): Mutation {
  return { name, ...rest }
}
