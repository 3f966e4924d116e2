import { MirrorError } from '../../base/errors.ts'

/** A bundle in an image layout: a folder, and the name (tag or digest) in its index; null: the only one there. */
export interface LayoutReference {
  readonly kind: 'layout'
  readonly folder: string
  readonly name: string | null
}

/** A bundle in a registry. `host` may have a port; `name` is a tag or a digest. */
export interface RegistryReference {
  readonly kind: 'registry'
  readonly host: string
  readonly repository: string
  readonly name: string
}

/** Where a bundle is as an OCI artifact. */
export type OciReference = LayoutReference | RegistryReference

/** The tag where none is given, as other tools have it. */
export const DEFAULT_TAG = 'latest'
const TAG = /^\w[\w.-]{0,127}$/
const DIGEST = /^sha256:[\da-f]{64}$/
/** Names of the distribution specification, section "Pulling manifests". */
const REPOSITORY = /^[a-z\d]+(?:(?:\.|_|__|-+)[a-z\d]+)*(?:\/[a-z\d]+(?:(?:\.|_|__|-+)[a-z\d]+)*)*$/
const HOST = /^(?:[a-z\d](?:[a-z\d.-]*[a-z\d])?|\[[\da-f:.]+\])(?::\d{1,5})?$/i

/** Returns the place that an argument beginning with `oci:` names; null for any other: a file. Throws `usage`. */
export function readReference(text: string): OciReference | null {
  if (!text.startsWith('oci:')) return null
  return text.startsWith('oci://') ? registryOf(text) : layoutOf(text)
}

/** Whether a text is HOST or HOST/PREFIX, below which a registry has repositories. */
export function isRegistryPlace(text: string): boolean {
  try {
    return readReference(`oci://${text.replace(/\/$/, '')}/a`)?.kind === 'registry'
  } catch {
    return false
  }
}

function registryOf(text: string): RegistryReference {
  const slash = text.indexOf('/', 'oci://'.length)
  const host = text.slice('oci://'.length, slash < 0 ? undefined : slash)
  const { path, name } = split(slash < 0 ? '' : text.slice(slash + 1))
  const named = name ?? DEFAULT_TAG
  const isValid = HOST.test(host) && path.length <= 255 && REPOSITORY.test(path) && isName(named)
  if (isValid) return { kind: 'registry', host, repository: path, name: named }
  throw new MirrorError(
    'usage',
    `${text} names no place in a registry: write oci://HOST/REPOSITORY:TAG, such as oci://registry.example.com/mirror:daily, or ` +
      'REPOSITORY@sha256:…',
  )
}

function layoutOf(text: string): LayoutReference {
  const { path, name } = split(text.slice('oci:'.length))
  if (path !== '' && (name === null || isName(name))) return { kind: 'layout', folder: path, name }
  throw new MirrorError(
    'usage',
    `${text} names no image layout: write oci:FOLDER:TAG, such as oci:/media/usb/mirror:daily`,
  )
}

/** Splits the tag or digest off; null: there is none. */
function split(text: string): { path: string; name: string | null } {
  const at = text.indexOf('@')
  if (at >= 0) return { path: text.slice(0, at), name: text.slice(at + 1) }
  const colon = text.lastIndexOf(':')
  if (colon <= text.lastIndexOf('/')) return { path: text, name: null }
  return { path: text.slice(0, colon), name: text.slice(colon + 1) }
}

function isName(name: string): boolean {
  return isDigest(name) || TAG.test(name)
}

/** Whether a name is a digest: of one manifest, for ever. */
export function isDigest(name: string): boolean {
  return DIGEST.test(name)
}

/** Returns how a reference is written, for messages. */
export function writeReference(reference: OciReference): string {
  const { name } = reference
  const place = reference.kind === 'layout' ? reference.folder : `//${reference.host}/${reference.repository}`
  if (name === null) return `oci:${place}`
  return `oci:${place}${isDigest(name) ? '@' : ':'}${name}`
}
