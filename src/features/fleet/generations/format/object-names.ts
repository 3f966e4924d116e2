/** The object that identifies the fleet: written once, at the first publication. */
export const FORMAT_KEY = 'format.json'

/** A hint at the newest generation; it may be outdated, lost or wrong. */
export const HEAD_KEY = 'head.json'

/** Prefixes of the objects that garbage collection deletes. */
export const BUNDLE_FOLDER = 'bundles/'
export const CHANGE_FOLDER = 'changes/'
export const PLAN_FOLDER = 'gc/'
export const GENERATION_FOLDER = 'gen/'
/** Prefix of the objects in which the mirrors of a fleet say what they serve. */
export const READER_FOLDER = 'readers/'

const DIGITS = 20

/** Returns the key of a generation: it is written once, which publishes the generation. */
export function generationKey(generation: number): string {
  return `${GENERATION_FOLDER}${padded(generation)}.json`
}

/** Returns the key of a full bundle or delta. */
export function bundleKey(sha256: string): string {
  return `${BUNDLE_FOLDER}${sha256}.zip`
}

/** Returns the key of the change log rows of a generation; two publishers of one number have different keys. */
export function changesKey(generation: number, sha256: string): string {
  return `${CHANGE_FOLDER}${padded(generation)}.${sha256}.jsonl.gz`
}

/** Returns the key of the object that lets syncs run again after a rollback that was published as this generation. */
export function releaseKey(generation: number): string {
  return `release/${padded(generation)}.json`
}

/** Returns the number of a generation from its key; null for any other key. */
export function numberInKey(key: string): number | null {
  const [, digits] = /^gen\/(\d{20})\.json$/.exec(key) ?? []
  return digits === undefined ? null : Number(digits)
}

const COLLECTABLE = /^(?:bundles\/[\da-f]{64}\.zip|changes\/\d{20}\.[\da-f]{64}\.jsonl\.gz|readers\/[\da-f]{32}\.json)$/

/** Reports whether a key is that of a bundle, of changes or of a mirror's report; a store may contain other objects. */
export function isCollectable(key: string): boolean {
  return COLLECTABLE.test(key)
}

function padded(generation: number): string {
  return String(generation).padStart(DIGITS, '0')
}
