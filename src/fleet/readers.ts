/** Prefix of the objects in which the mirrors of a fleet say what they serve. */
const READERS = 'readers/'

/** Returns the key of the object in which a mirror says each minute what it serves. */
export function readerKey(id: string): string {
  return `${READERS}${id}.json`
}
