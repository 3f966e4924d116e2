import { MirrorError } from '../core/errors.ts'
import { plainText } from '../core/text.ts'
import { type Fields, isObject } from '../json/objects.ts'

/** Bounds of an SBOM that is read: far above real ones, and what a thread of one gigabyte parses. */
export const SBOM_BOUNDS = { bytes: 64 * 2 ** 20, components: 100_000, depth: 64 } as const

/** Longest name, version, package URL and reference that is kept, characters: far above real ones, and above what is judged. */
const LONGEST_TEXT = 2_000

/** A component as an SBOM lists it; texts are empty where it has none. A component with several purls is listed once for each. */
export interface SbomComponent {
  /** Its `bom-ref` or SPDX identifier. */
  readonly ref: string
  readonly name: string
  readonly version: string
  /** Null: it has none. */
  readonly purl: string | null
}

/** What of an SBOM is judged. */
export interface InputSbom {
  /** Format and version, such as `CycloneDX 1.6`. */
  readonly format: string
  /** Name of what it describes; empty where it has none. */
  readonly name: string
  /** Package URLs of what it describes, such as an image. */
  readonly subjects: readonly string[]
  readonly components: readonly SbomComponent[]
  /** Whether it came in a signed envelope, whose signature is not checked here. */
  readonly enveloped: boolean
  /** How other documents link to it; absent: it has no serial number. */
  readonly serial?: BomSerial
  /** SHA-256 of the document that it was read from, hex; absent: it is not known. */
  readonly digest?: string
  /** Id of the mirrored tag that it is of; absent: it is not known. */
  readonly tag?: string
}

/** A CycloneDX document as BOM-Links name it. */
export interface BomSerial {
  /** Serial number, without `urn:uuid:`, in lower case; empty where it has none. */
  readonly serial: string
  readonly version: string
}

/** Collects components. Throws `bad_request` beyond the bounds. */
export function createComponents() {
  const components: SbomComponent[] = []
  return {
    components,
    add({ ref, name, version }: Omit<SbomComponent, 'purl'>, purls: readonly unknown[]): void {
      const texts = purls.filter((purl) => typeof purl === 'string' && purl !== '') as string[]
      for (const purl of texts.length === 0 ? [null] : new Set(texts.map(bounded)))
        components.push({ ref: bounded(ref), name: bounded(name), version: bounded(version), purl })
      if (components.length > SBOM_BOUNDS.components)
        throw unreadable(
          `it has more than ${SBOM_BOUNDS.components} components: split it, or leave files out of it`,
        )
    },
  }
}

/** Cuts a text that is longer than any real one: every finding repeats its component. A purl is then refused as too long. */
function bounded(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text
}

/** Returns the name of an SBOM, cut where it is longer than any real one; '' for what is no text. */
export function nameIn(value: unknown): string {
  return bounded(textOr(value))
}

/** Returns a value of an SBOM that should be a text; '' for anything else. */
export function textOr(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/**
 * Iterates over the objects of a list of an SBOM; empty where it has none. Throws `bad_request` for what is no list, and
 * where an element is no object: what is not read would look free of vulnerabilities. `name`: what the list is called.
 */
export function* eachListed(list: unknown, name: string): Generator<Fields, void, undefined> {
  if (list === undefined || list === null) return
  if (!Array.isArray(list)) throw unreadable(`its ${name} are no list`)
  for (const [at, one] of (list as unknown[]).entries()) {
    if (!isObject(one)) throw unreadable(`number ${at + 1} in a list of its ${name} is no object`)
    yield one
  }
}

/** Returns an object of an SBOM; an empty one where it has none. Throws `bad_request` for anything else. */
export function objectIn(value: unknown, name: string): Fields {
  if (value === undefined || value === null) return {}
  if (!isObject(value)) throw unreadable(`its ${name} is no object`)
  return value
}

/** Returns the error for what is no SBOM that can be judged, in one line. */
export function unreadable(why: string, cause?: unknown): MirrorError {
  return new MirrorError('bad_request', `the SBOM cannot be read: ${plainText(why)}`, { cause })
}
