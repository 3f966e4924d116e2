import type { Db } from './open.ts'

/** Returns a function that reports whether other connections wrote to one of the databases since its last call. */
export function createChangeCheck(databases: readonly Db[]): () => boolean {
  const versions = databases.map((db) => db.prepare<[], number>('PRAGMA data_version').pluck())
  let seen = ''
  return () => {
    const before = seen
    seen = versions.map((version) => version.get()).join()
    return seen !== before
  }
}
