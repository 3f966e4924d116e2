import type { Fields } from '../json/objects.ts'
import {
  SBOM_BOUNDS,
  type BomSerial,
  type InputSbom,
  createComponents,
  eachListed,
  nameIn,
  objectIn,
  textOr,
  unreadable,
} from './sbom.ts'

/** Versions of the format whose components are as those of 1.6. */
const VERSION = /^1\.\d{1,3}$/

/**
 * Reads a CycloneDX document: what it describes (`metadata.component`) and its components, nested ones included. Throws
 * `bad_request`.
 */
export function readCycloneDx(document: Fields): Omit<InputSbom, 'enveloped'> {
  const version = textOr(document['specVersion'])
  if (!VERSION.test(version))
    throw unreadable(`CycloneDX ${version || 'without specVersion'} is not known here: use 1.4 to 1.6`) // prettier-ignore
  const subject = objectIn(
    objectIn(document['metadata'], 'metadata')['component'],
    'metadata.component',
  )
  const found = createComponents()
  const add = (one: Fields): void => found.add(namesOf(one), [one['purl']])
  if (textOr(subject['purl']) !== '') add(subject)
  for (const list of [subject['components'], document['components']]) eachNested(list, add)
  const serial = serialOf(document)
  return {
    format: `CycloneDX ${version}`,
    name: nameIn(subject['name']),
    subjects: subjectsIn(subject),
    components: found.components,
    ...(serial.serial !== '' && { serial }),
  }
}

/** Returns the package URL of what a document describes; that of an image by its digest, where it has only that. */
function subjectsIn({ purl, type, name, version }: Fields): string[] {
  const own = textOr(purl)
  if (own !== '') return [own]
  const digest = textOr(version)
  if (type !== 'container' || !/^sha\d{3}:[\da-f]{64,}$/i.test(digest)) return []
  const last = textOr(name).replace(/[:@].*$/s, '').split('/').at(-1) ?? '' // prettier-ignore
  const image = last === '' ? 'image' : last.toLowerCase()
  return [`pkg:oci/${encodeURIComponent(image)}@${encodeURIComponent(digest)}`]
}

/** Returns the serial number of a document as BOM-Links have it, and its version. */
export function serialOf({ serialNumber, version }: Fields): BomSerial {
  const isVersion = typeof version === 'number' || typeof version === 'string'
  return { serial: plainSerial(textOr(serialNumber)), version: isVersion ? String(version) : '1' }
}

/** Returns a serial number as it is compared. */
export function plainSerial(text: string): string {
  return text.replace(/^urn:uuid:/i, '').toLowerCase()
}

/** Calls `use` with each component of a list and those within it, in their order. */
function eachNested(list: unknown, use: (component: Fields) => void): void {
  const open = [eachListed(list, 'components')]
  for (;;) {
    const level = open.at(-1)
    if (level === undefined) return
    const { value, done } = level.next()
    if (done === true) open.pop()
    else {
      use(value)
      open.push(eachListed(value['components'], 'components'))
      if (open.length > SBOM_BOUNDS.depth + 1)
        throw unreadable(`its components are nested deeper than ${SBOM_BOUNDS.depth} levels`)
    }
  }
}

function namesOf({ 'bom-ref': ref, group, name, version }: Fields) {
  const parts = [textOr(group), textOr(name)].filter((part) => part !== '')
  return { ref: textOr(ref), name: parts.join('/'), version: textOr(version) }
}
