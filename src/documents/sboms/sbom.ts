import type { MirrorError } from '../../base/errors.ts'
import { refuseCostly } from '../../base/json/limits.ts'
import { type Fields, isObject } from '../../base/json/objects.ts'
import { type Opening, unreadableAs } from '../envelopes.ts'

/** The formats of SBOMs that are read: every refusal names them. */
export const SBOM_FORMATS = 'CycloneDX 1.2 to 1.7, SPDX 2.1 to 2.3 or SPDX 3.0, in JSON'

/** How SBOMs are opened. JSON that would take gigabytes, or very long, to parse is refused. */
export const SBOM_OPENING: Opening = { what: 'the SBOM', formats: SBOM_FORMATS, refuse: refuseCostly }

/** What a component is, in words, that is no package. */
export const SUBJECT = 'what the SBOM describes'
export const PACKAGE_LIST = 'a list of packages'

/** How an SBOM is incomplete of which another document describes a part: that one is not read. */
export const ELSEWHERE = 'another document describes a part'

/** Bounds of an SBOM that is read: far above real ones, and what a thread of one gigabyte parses. */
export const SBOM_BOUNDS = { bytes: 64 * 2 ** 20, components: 100_000, depth: 64 } as const

/** Longest name, version, package URL and reference that is kept, characters: far above real ones, and above what is judged. */
const LONGEST_TEXT = 2_000

/** A source package that an SBOM itself names for a component, beside what its package URL says. */
export interface SbomSource {
  readonly name: string
  /** With its epoch and release; empty: the SBOM does not say it. */
  readonly version: string
}

/** A component as an SBOM lists it; texts are empty where it has none. A component with several purls is listed once for each. */
export interface SbomComponent {
  /** Its `bom-ref` or SPDX identifier. */
  readonly ref: string
  readonly name: string
  readonly version: string
  /** Null: it has none. */
  readonly purl: string | null
  /** The source package that the SBOM names beside the purl; null: none. */
  readonly source: SbomSource | null
  /** What it is where that is no package, such as `a file`; null: a package. */
  readonly kind: string | null
  /** Its type in the words of the format, such as `library`. */
  readonly type: string
  /** Its licences, with commas between them. */
  readonly licences: string
}

/** An SBOM as it is read. */
export interface InputSbom {
  /** Format and version, such as `CycloneDX 1.6`. */
  readonly format: string
  /** Name of what it describes; empty where it has none. */
  readonly name: string
  /** Version of what it describes; empty where it does not say it. */
  readonly version: string
  /** When it was made, as it is written; empty where it does not say it. */
  readonly createdAt: string
  /** Package URLs of what it describes, such as an image. */
  readonly subjects: readonly string[]
  readonly components: readonly SbomComponent[]
  /** The different operating systems that it names, such as `debian-12.7`. */
  readonly systems: readonly string[]
  /** Its own word that it does not list all components, such as `incomplete`; absent: it does not say so. */
  readonly incomplete?: string
  /** Why it may be of another image than the one that is meant, in words; absent: nothing says so. */
  readonly ofAnother?: string
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
    add(
      named: Pick<SbomComponent, 'ref' | 'name' | 'version' | 'type'>,
      { source, kind, licences: listed }: Pick<SbomComponent, 'source' | 'kind' | 'licences'>,
      purls: readonly unknown[],
    ): void {
      const ref = bounded(named.ref)
      const name = bounded(named.name)
      const version = bounded(named.version)
      const type = bounded(named.type)
      const licences = bounded(listed)
      const texts = purls.filter((purl) => typeof purl === 'string' && purl !== '') as string[]
      for (const purl of texts.length === 0 ? [null] : new Set(texts.map(bounded)))
        components.push({ ref, name, version, purl, source, kind, type, licences })
      if (components.length > SBOM_BOUNDS.components)
        throw unreadable(`it has more than ${SBOM_BOUNDS.components} components: split it, or leave files out of it`)
    },
  }
}

/** Cuts a text that is longer than any real one: every finding repeats its component. A purl is then refused as too long. */
export function bounded(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text
}

/** Creates what collects the operating systems that an SBOM names, each once; more than a few are not listed. */
export function createSystems() {
  const systems = new Set<string>()
  return {
    /** Adds one by its identifier of os-release, such as `debian`, and its version; without a name it is none. */
    add(name: string, version: string): void {
      const parts = [name, version].map((part) => part.trim().toLowerCase())
      const known = parts.filter((part) => part !== '').join('-')
      if (name.trim() !== '' && systems.size < MOST_SYSTEMS) systems.add(bounded(known))
    },
    list: (): string[] => [...systems],
  }
}

/** Operating systems of one SBOM that are kept: two are as unclear as more. */
const MOST_SYSTEMS = 10

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
export function unreadable(why: string): MirrorError {
  return unreadableAs(SBOM_OPENING.what, why)
}
