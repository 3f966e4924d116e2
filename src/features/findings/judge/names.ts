import type { FindingsStore } from '../../../store/findings/writes.ts'

/** Under which other ids the vulnerability of a record is known. */
export interface RecordNames {
  readonly aliases: readonly string[]
  readonly upstream: readonly string[]
}

/** Returns the names of a record as they are stored. */
export function writeNames({ aliases, upstream }: RecordNames): string {
  return JSON.stringify([aliases, upstream])
}

/** Returns stored names. */
export function readNames(text: string | null): RecordNames {
  const [aliases = [], upstream = []] = JSON.parse(text ?? '[]') as string[][]
  return { aliases, upstream }
}

/** Creates the function that reads the stored names of a record, once. */
export function createNameReader(store: Pick<FindingsStore, 'readNames'>): (record: string) => RecordNames {
  const known = new Map<string, RecordNames>()
  return (record) => {
    const names = known.get(record) ?? readNames(store.readNames(record))
    known.set(record, names)
    return names
  }
}
