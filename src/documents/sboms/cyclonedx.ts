import { type Fields, eachObject, fieldsOf } from '../../base/json/objects.ts'
import {
  ELSEWHERE,
  PACKAGE_LIST,
  SBOM_BOUNDS,
  type BomSerial,
  SBOM_FORMATS,
  SUBJECT,
  type InputSbom,
  bounded,
  createComponents,
  createSystems,
  eachListed,
  nameIn,
  objectIn,
  textOr,
  unreadable,
} from './sbom.ts'
import { propertiesOf, sourceInProperties } from './source.ts'

/** Versions of the format that have components in JSON: from 1.2 on; those after 1.7 are read alike. */
const VERSION = /^1\.(?:[2-9]|\d{2,3})$/

/**
 * Reads a CycloneDX document: what it describes (`metadata.component`) and its components, nested ones included. Throws
 * `bad_request`.
 */
export function readCycloneDx(document: Fields): Omit<InputSbom, 'enveloped'> {
  const version = textOr(document['specVersion'])
  if (!VERSION.test(version))
    throw unreadable(`CycloneDX ${version || 'without specVersion'} is not known here: use ${SBOM_FORMATS}`)
  const metadata = objectIn(document['metadata'], 'metadata')
  const subject = objectIn(metadata['component'], 'metadata.component')
  const found = createComponents()
  const systems = createSystems()
  const linked: Fields[] = []
  const add = (one: Fields): void => {
    const properties = propertiesOf(one)
    if (one['type'] === SYSTEM) addSystem(systems, one, properties)
    if (one !== subject && hasOtherBom(one)) linked.push(one)
    const source = sourceInProperties(properties)
    const kind = one === subject ? SUBJECT : kindOf(one, properties)
    const { 'bom-ref': ref, version, type, purl } = one
    const named = { ref: textOr(ref), name: nameOf(one), version: textOr(version), type: textOr(type) }
    found.add(named, { source, kind, licences: licencesOf(one) }, [purl])
  }
  if (textOr(subject['purl']) !== '') add(subject)
  else if (subject['type'] === SYSTEM) addSystem(systems, subject, propertiesOf(subject))
  for (const list of [subject['components'], document['components']]) eachNested(list, add)
  const serial = serialOf(document)
  return {
    format: `CycloneDX ${version}`,
    name: nameIn(subject['name']),
    version: nameIn(subject['version']),
    createdAt: nameIn(metadata['timestamp']),
    subjects: subjectsIn(subject),
    components: found.components,
    systems: systems.list(),
    ...(linked.length > 0 && { incomplete: ELSEWHERE }),
    ...incompleteIn(document),
    ...(serial.serial !== '' && { serial }),
  }
}

/** Whether the components of one are in another document, which a BOM-Link names. */
function hasOtherBom({ components, externalReferences }: Fields): boolean {
  const isLinked = ({ type, url }: Fields): boolean => type === 'bom' && textOr(url).startsWith('urn:cdx:')
  return components === undefined && eachObject(externalReferences).some(isLinked)
}

/** Returns the package URL of what a document describes; that of an image by its digest, where it has only that. */
function subjectsIn({ purl, type, name, version }: Fields): string[] {
  const own = textOr(purl)
  if (own !== '') return [own]
  const digest = textOr(version)
  if (type !== 'container' || !/^sha\d{3}:[\da-f]{64,}$/i.test(digest)) return []
  const last =
    textOr(name)
      .replace(/[:@].*$/s, '')
      .split('/')
      .at(-1) ?? ''
  const image = last === '' ? 'image' : last.toLowerCase()
  return [`pkg:oci/${encodeURIComponent(image)}@${encodeURIComponent(digest)}`]
}

/** Reads which of its compositions, of components or of what these need, a document calls incomplete; `unknown` says nothing. */
function incompleteIn({ compositions }: Fields): Pick<InputSbom, 'incomplete'> {
  const isOfComponents = (one: Fields): boolean => LISTED.some((name) => name in one) || !('vulnerabilities' in one)
  const words = eachObject(compositions).flatMap((one) => (isOfComponents(one) ? textOr(one['aggregate']) : []))
  const incomplete = words.find((word) => word.startsWith('incomplete'))
  return incomplete === undefined ? {} : { incomplete: bounded(incomplete) }
}

const LISTED = ['assemblies', 'dependencies']

/** Returns the serial number of a document as BOM-Links have it, and its version. */
export function serialOf({ serialNumber, version }: Fields): BomSerial {
  const isVersion = typeof version === 'number' || typeof version === 'string'
  return { serial: plainSerial(textOr(serialNumber)), version: isVersion ? String(version) : '1' }
}

/** Returns a serial number as it is compared. */
export function plainSerial(text: string): string {
  return text.replace(/^urn:uuid:/i, '').toLowerCase()
}

const SYSTEM = 'operating-system'

/** Types of components that are no packages, in words. */
const KINDS: ReadonlyMap<unknown, string> = new Map([
  ['file', 'a file'],
  [SYSTEM, 'an operating system'],
])

/** How Trivy marks the lists of an image or a folder that it found packages in, such as a lock file. */
const TRIVY_LIST = 'aquasecurity:trivy:Class'

function kindOf({ type, purl }: Fields, properties: ReadonlyMap<string, string>): string | null {
  if (textOr(purl) === '' && properties.has(TRIVY_LIST) && type !== SYSTEM) return PACKAGE_LIST
  return KINDS.get(type) ?? null
}

/** Syft says the identifier of the system in a property, and its name for people in `name`. */
function addSystem(
  systems: ReturnType<typeof createSystems>,
  { name, version, swid }: Fields,
  properties: ReadonlyMap<string, string>,
): void {
  const { name: swidName, version: swidVersion } = fieldsOf(swid)
  const names = [properties.get('syft:distro:id'), textOr(swidName), textOr(name)]
  const versions = [properties.get('syft:distro:versionID'), textOr(swidVersion), textOr(version)]
  systems.add(firstOf(names), firstOf(versions))
}

function firstOf(texts: readonly (string | undefined)[]): string {
  return texts.find((text) => text !== undefined && text !== '') ?? ''
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
      if (open.length > SBOM_BOUNDS.depth)
        throw unreadable(`its components are nested deeper than ${SBOM_BOUNDS.depth} levels`)
      const { components } = value
      if (components !== undefined) open.push(eachListed(components, 'components'))
    }
  }
}

/** Licences of a component that are named. */
const MOST_LICENCES = 10

function licencesOf({ licenses }: Fields): string {
  if (licenses === undefined) return ''
  const named: string[] = []
  for (const { license, expression } of eachObject(licenses).slice(0, MOST_LICENCES)) {
    const { id, name } = fieldsOf(license)
    const text = textOr(expression ?? id ?? name)
    if (text !== '') named.push(text)
  }
  return named.join(', ')
}

function nameOf({ group, name }: Fields): string {
  const prefix = textOr(group)
  return prefix === '' ? textOr(name) : [prefix, textOr(name)].filter((part) => part !== '').join('/')
}
