/**
 * The schema of a database, as the steps that make it. A step is never edited once it is released: a change is a further step. `PRAGMA user_version` is the
 * number of the last step that a database has; 0 for a new one.
 */
export interface Schema {
  /** The number of the first step. No program opens a database of a lower one. */
  readonly first: number
  readonly steps: readonly string[]
}

/** Returns the number of the newest schema. */
export function newestOf({ first, steps }: Schema): number {
  return first + steps.length - 1
}

/** Reports whether this program opens a database of a version, at once or after it is migrated. */
export function isKnown(version: number, schema: Schema): boolean {
  return version === 0 || (version >= schema.first && version <= newestOf(schema))
}

/** Says of a database of another version what wrote it. */
export function whyUnknown(version: number, schema: Schema): string {
  const newest = newestOf(schema)
  const writer = version > newest ? 'a newer Patchmirror' : 'no release of Patchmirror'
  return `has schema ${version}, this program knows ${schema.first} to ${newest}: it was written by ${writer}`
}

/** Returns the steps that make a database of a version, which `checkVersion` accepts. */
export function stepsUpTo(version: number, { first, steps }: Schema): readonly string[] {
  return version === 0 ? [] : steps.slice(0, version - first + 1)
}
