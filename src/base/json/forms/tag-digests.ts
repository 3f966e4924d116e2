import { readText } from '../field-names.ts'
import { type Fields, fieldsOf, isObject } from '../objects.ts'

/** How deep digests are looked for. */
const MAX_DEPTH = 6

/** The digest of an image that a listed tag names. */
interface TagDigest {
  /** `sha256:…`, in lower case. */
  readonly digest: string
  /** Empty: it is not said. */
  readonly arch: string
  /** Named as that of an index. */
  readonly isIndex: boolean
  /** Within a list of the item. */
  readonly isListed: boolean
}

const DIGEST = /(?:^|@)(sha\d{3}:[\da-f]{64,})$/i
const INDEX = /index|manifest_?list|list_?digest|multi_?arch/i
/** Fields with digests of something else than the image. */
const OTHERS = /layer|sbom|vex|proven|attest|signature|config|base|parent|previous|document|file/i

/** Collects the digests of images in the item of a tag, each once. */
export function digestsInTag(item: unknown): TagDigest[] {
  const found = new Map<string, TagDigest>()
  const collect = (value: unknown, key: string, listed: boolean, near: Fields, depth: number): void => {
    if (depth > MAX_DEPTH || OTHERS.test(key)) return
    if (typeof value === 'string') {
      const digest = DIGEST.exec(value)?.[1]?.toLowerCase()
      if (digest === undefined || found.has(digest)) return
      found.set(digest, { digest, arch: archIn(near), isIndex: INDEX.test(key), isListed: listed })
    } else if (Array.isArray(value))
      for (const one of value as unknown[]) collect(one, key, true, isObject(one) ? one : near, depth + 1)
    else if (isObject(value))
      for (const [name, inner] of Object.entries(value)) collect(inner, name, listed, value, depth + 1)
  }
  collect(item, '', false, {}, 0)
  return [...found.values()]
}

/** Returns the digests that are copied for a tag: those of its indexes, which name its platforms; without an index, all. */
export function copiedDigests(item: unknown): string[] {
  const found = digestsInTag(item)
  const indexes = found.filter(({ isIndex }) => isIndex)
  return (indexes.length > 0 ? indexes : found).map(({ digest }) => digest)
}

/** Returns the architecture that an object names: `arch`, `platform: linux/arm64`, `platform: {architecture}`. */
function archIn(near: Fields): string {
  const { platform } = near
  const own = readText(near, ['arch', 'architecture'])
  if (own !== null) return own
  if (typeof platform === 'string') return platform.split('/')[1] ?? ''
  return readText(fieldsOf(platform), ['architecture', 'arch']) ?? ''
}
