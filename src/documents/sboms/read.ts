import { type Fields, eachObject, fieldsOf, isObject } from '../../base/json/objects.ts'
import { documentsIn, envelopesOf, subjectDigests } from '../envelopes.ts'
import { isCsaf, isCycloneDx, isOpenVex, isSpdx2, isSpdx3, isStatement, membersIn } from '../formats.ts'
import { readCycloneDx } from './cyclonedx.ts'
import {
  type InputSbom,
  ELSEWHERE,
  PACKAGE_LIST,
  SBOM_BOUNDS,
  SBOM_FORMATS,
  SBOM_OPENING,
  SUBJECT,
  createComponents,
  createSystems,
  eachListed,
  nameIn,
  textOr,
  unreadable,
} from './sbom.ts'
import { sourceInText } from './source.ts'
import { isImage, readProductName } from '../vex/products.ts'

/**
 * Reads an SBOM in CycloneDX, SPDX 2 or SPDX 3, also as the predicate of an in-toto statement in a DSSE envelope; signatures
 * are not checked. Throws `bad_request` for anything else, and for several SBOMs.
 */
export function readInputSbom(bytes: Buffer): InputSbom {
  const sboms = readSboms(bytes)
  const [first, ...more] = sboms
  if (more.length > 0) throw unreadable(`it has ${sboms.length} SBOMs: give them one at a time`)
  return first
}

/** Reads the SBOMs of a file, of which there is at least one. Throws `bad_request`. */
export function readSboms(bytes: Buffer): readonly [InputSbom, ...InputSbom[]] {
  if (bytes.length > SBOM_BOUNDS.bytes) throw unreadable(sbomTooLarge())
  const { documents } = documentsIn(bytes, SBOM_OPENING)
  const opened = documents.map((one) => membersOf(one).flatMap((document) => open(document) ?? []))
  const [first, ...more] = opened.flat()
  if (first === undefined) throw unreadable(whyNot(documents[0] ?? {}))
  for (const [at, document] of documents.entries())
    if (opened[at]?.length === 0 && !isOtherKind(document))
      throw unreadable(`number ${at + 1} in its list beside an SBOM cannot be read: ${whyNot(document)}`)
  return [first, ...more]
}

/** Returns the SBOM that is a document, in its envelopes; null for none. */
function open(outermost: Fields): InputSbom | null {
  const about = new Set<string>()
  for (const document of envelopesOf(outermost, SBOM_OPENING)) {
    const read = readerOf(document)
    if (read !== null) {
      const sbom = read(document)
      const subjects = attestedSubjects(sbom.subjects, [...about])
      return { ...sbom, subjects, enveloped: document !== outermost }
    }
    for (const digest of isStatement(membersIn(document)) ? subjectDigests(document) : []) about.add(digest)
  }
  return null
}

function readerOf(document: Fields): ((document: Fields) => Omit<InputSbom, 'enveloped'>) | null {
  if (isCycloneDx(membersIn(document))) return readCycloneDx
  if (isSpdx2(membersIn(document))) return readSpdx2
  return isInSpdx3(document) ? readSpdx3 : null
}

/**
 * Returns what an SBOM describes: where it names at most an image, and that without a digest, it is the one image that its attestation is
 * about. `about`: the digests of that.
 */
function attestedSubjects(subjects: readonly string[], about: readonly string[]): readonly string[] {
  const [digest = '', ...others] = about.filter((one) => /^sha\d{3}:[\da-f]{64,}$/.test(one))
  const [own = 'pkg:oci/image', ...more] = subjects
  const name = readProductName(own)
  if (digest === '' || others.length + more.length > 0 || name === null || !isImage(name) || name.digest !== '')
    return subjects
  return [`${own}${own.includes('?') ? '&' : '?'}digest=${encodeURIComponent(digest)}`]
}

/** Whether a document is one that lists no packages: a statement or VEX, of which an image has several beside its SBOM. */
function isOtherKind(outermost: Fields): boolean {
  const all = [...envelopesOf(outermost, SBOM_OPENING)]
  if (all.some((one) => isOpenVex(membersIn(one)) || isCsaf(one))) return true
  const type = all.map(({ predicateType }) => textOr(predicateType)).find((text) => text !== '')
  return type === undefined ? Object.keys(outermost).length === 0 : !/cyclonedx|spdx|syft|bom/i.test(type)
}

/** Returns the SBOMs in the members in which GitHub's dependency graph and Docker's buildx give them, else the document. */
function membersOf(document: Fields): Fields[] {
  const { sbom, SPDX: spdx, AdditionalSPDXs: more } = document
  const members = [sbom, spdx, ...eachObject(more)].filter(isObject).filter((one) => isSpdx2(membersIn(one)))
  return members.length === 0 ? [document] : members
}

/** Returns why an SBOM is too large, and what to do. */
export function sbomTooLarge(): string {
  return `it is larger than ${SBOM_BOUNDS.bytes / 2 ** 20} MiB: leave the files out of it, or split it`
}

function whyNot(outermost: Fields): string {
  const all = [...envelopesOf(outermost, SBOM_OPENING)]
  if (all.some(({ artifacts }) => Array.isArray(artifacts)))
    return `it is in syft's own format: write it as ${SBOM_FORMATS}`
  const type = all.map(({ predicateType }) => textOr(predicateType)).find((text) => text !== '') ?? ''
  const found = type === '' ? '' : `, but a statement of type ${type.slice(0, 100)}`
  return `it is none${found}: accepted are ${SBOM_FORMATS}`
}

/** Reads an SPDX 2 document: its packages, with the purls of their external references. Throws `bad_request`. */
function readSpdx2(document: Fields): Omit<InputSbom, 'enveloped'> {
  const version = textOr(document['spdxVersion'])
  if (!/^SPDX-2\.[1-9]\d{0,2}$/.test(version)) throw unreadable(`${version} is not known here: use ${SBOM_FORMATS}`)
  const found = createComponents()
  const systems = createSystems()
  const packages = [...eachListed(document['packages'], 'packages')]
  const described = subjectsOf(document)
  const subjects = packages.filter((one) => described.has(textOr(one['SPDXID'])))
  const purls: string[] = []
  for (const one of packages) {
    const { SPDXID: id, name, versionInfo, externalRefs } = one
    const own = [...eachListed(externalRefs, 'externalRefs')].flatMap(({ referenceType: type, referenceLocator }) =>
      typeof type === 'string' && /(?:^|[/#-])purl$/i.test(type) ? [textOr(referenceLocator)] : [],
    )
    if (described.has(textOr(id))) for (const purl of own) purls.push(purl)
    const kind = isSubjectAlone(one, subjects) ? SUBJECT : kindIn(one)
    if (kind === SYSTEM) systems.add(textOr(name), textOr(versionInfo))
    const type = textOr(one['primaryPackagePurpose']).toLowerCase()
    const names = { ref: textOr(id), name: textOr(name), version: textOr(versionInfo), type }
    found.add(names, { source: sourceInText(one['sourceInfo']), kind, licences: licenceOf(one) }, own)
  }
  return {
    format: version.replace('-', ' '),
    name: nameIn(document['name']),
    version: '',
    createdAt: nameIn(fieldsOf(document['creationInfo'])['created']),
    subjects: purls,
    components: found.components,
    systems: systems.list(),
    ...(eachObject(document['relationships']).some(isElsewhere) && { incomplete: ELSEWHERE }),
  }
}

/** What relationships say that name a part, which is then the second element, or a whole. */
const HAS_PART = /^(?:DESCRIBES|CONTAINS|DEPENDS_ON|HAS_PREREQUISITE|STATIC_LINK|DYNAMIC_LINK)$/
const IS_PART = /^(?:DESCRIBED_BY|CONTAINED_BY|(?:RUNTIME_|PROVIDED_)?DEPENDENCY_OF|PREREQUISITE_FOR)$/

/** Whether a relationship names a part that another document describes. */
function isElsewhere({ relationshipType, spdxElementId, relatedSpdxElement }: Fields): boolean {
  const type = textOr(relationshipType)
  const isExternal = (id: unknown): boolean => textOr(id).startsWith('DocumentRef-')
  return (HAS_PART.test(type) && isExternal(relatedSpdxElement)) || (IS_PART.test(type) && isExternal(spdxElementId))
}

/** The licence that was concluded, else the declared one; empty: neither is stated. */
function licenceOf({ licenseConcluded, licenseDeclared }: Fields): string {
  const concluded = textOr(licenseConcluded)
  const declared = textOr(licenseDeclared)
  if (!UNSTATED.has(concluded)) return concluded
  return UNSTATED.has(declared) ? '' : declared
}

const UNSTATED: ReadonlySet<string> = new Set(['', 'NOASSERTION', 'NONE'])

/** Whether a package is what the document is about: one that describes several packages is a list of them. */
function isSubjectAlone(one: Fields, subjects: readonly Fields[]): boolean {
  return subjects.length === 1 && subjects[0] === one
}

const SYSTEM = 'an operating system'

/** Identifiers that Trivy gives to what is no package; before SPDX 2.3 nothing else says it. */
const TRIVY_SYSTEM = /^SPDXRef-OperatingSystem-/
const TRIVY_LIST = /^SPDXRef-Application-/

function kindIn({ SPDXID: id, primaryPackagePurpose: purpose, externalRefs }: Fields): string | null {
  // the text of the specification has a hyphen, its JSON schema an underscore
  if (/^OPERATING[-_]SYSTEM$/.test(textOr(purpose)) || TRIVY_SYSTEM.test(textOr(id))) return SYSTEM
  if (purpose === 'FILE') return 'a file'
  return TRIVY_LIST.test(textOr(id)) && externalRefs === undefined ? PACKAGE_LIST : null
}

/** Ids of what a document describes. */
function subjectsOf({ documentDescribes, relationships }: Fields): Set<string> {
  const described = Array.isArray(documentDescribes) ? (documentDescribes as unknown[]) : []
  const related = [...eachObject(relationships)].flatMap((one) => {
    if (one['relationshipType'] === 'DESCRIBES') return [one['relatedSpdxElement']]
    return one['relationshipType'] === 'DESCRIBED_BY' ? [one['spdxElementId']] : []
  })
  return new Set([...described, ...related].map(textOr))
}

/**
 * Types of SPDX 3 that are packages, in each form that JSON-LD allows: models and data sets are of classes derived from it.
 */
const PACKAGE =
  /^(?:software[_:])?Package$|^(?:ai[_:])?AIPackage$|^(?:dataset[_:])?DatasetPackage$|^https?:\/\/spdx\.org\/rdf\/.+\/(?:Package|AIPackage|DatasetPackage)$/

/**
 * Reads an SPDX 3 document, a list of elements in JSON-LD: its packages (`software_Package`, models and data sets), with their package URL or that
 * of an external identifier. Throws `bad_request`.
 */
function readSpdx3(document: Fields): Omit<InputSbom, 'enveloped'> {
  const found = createComponents()
  const systems = createSystems()
  const graph = document['@graph'] ?? [document]
  const elements = withInner([...eachListed(graph, '@graph elements')])
  const byId = new Map(elements.map((one) => [idOf(one), one]))
  const roots = new Set(elements.filter(isDescribing).flatMap(rootsOf))
  // a type may be written in further ways, or be of an extension
  const packages = elements.filter((one) => hasType(one, PACKAGE) || ownText(one, 'packageUrl') !== '')
  const subjects = packages.filter((one) => roots.has(idOf(one)))
  const purls: string[] = []
  for (const one of packages) {
    const names = {
      ref: idOf(one),
      name: textOr(one['name']),
      version: ownText(one, 'packageVersion'),
      type: ownText(one, 'primaryPurpose'),
    }
    const url = ownText(one, 'packageUrl')
    const own = new Set([url, ...identifiersOf(one, byId)].filter((purl) => purl !== ''))
    if (roots.has(names.ref)) for (const purl of own) purls.push(purl)
    const kind = isSubjectAlone(one, subjects) ? SUBJECT : (PURPOSES.get(names.type) ?? null)
    if (kind === SYSTEM) systems.add(names.name, names.version)
    found.add(names, { source: sourceInText(ownText(one, 'sourceInfo')), kind, licences: '' }, [...own])
  }
  const about = elements.find((one) => hasType(one, /^SpdxDocument$/))
  const info = elements.find((one) => typeof one['specVersion'] === 'string')
  const version = textOr(info?.['specVersion']) || contextVersion(document)
  if (!/^3\.\d{1,3}(?:\.\d{1,3})?(?:-[\w.]{1,20})?$/.test(version))
    throw unreadable(`SPDX ${version} is not known here: use ${SBOM_FORMATS}`)
  return {
    format: `SPDX ${version}`,
    name: nameIn(about?.['name']),
    version: '',
    createdAt: nameIn(info?.['created']),
    subjects: purls,
    components: found.components,
    systems: systems.list(),
    ...incompleteIn(elements, roots),
  }
}

/** Adds to elements those that are written within them: JSON-LD allows it in place of an id. */
function withInner(elements: Fields[]): Fields[] {
  for (const one of elements)
    // it grows while it is read: elements have elements
    for (const value of Object.values(one))
      for (const inner of Array.isArray(value) ? (value as unknown[]) : [value])
        if (isObject(inner)) elements.push(inner)
  return elements
}

/** Reads whether a graph names only some parts, or one that another document describes. `roots`: ids of what it is about. */
function incompleteIn(elements: readonly Fields[], roots: ReadonlySet<string>): Pick<InputSbom, 'incomplete'> {
  if (elements.some(isIncomplete)) return { incomplete: 'incomplete' }
  const external = new Set(elements.map((one) => textOr(one['externalSpdxId'])).filter((id) => id !== ''))
  const parts = elements.filter(isOfParts).flatMap(({ to }) => idsOf(to))
  return [...roots, ...parts].some((id) => external.has(id)) ? { incomplete: ELSEWHERE } : {}
}

/** Whether an element is a relationship, of what contains or needs something, that names only some of it. */
function isIncomplete(element: Fields): boolean {
  return isOfParts(element) && /(?:^|\/)incomplete$/.test(textOr(element['completeness']))
}

function isOfParts({ relationshipType }: Fields): boolean {
  return /(?:^|\/)(?:contains|dependsOn|hasPrerequisite|hasStaticLink|hasDynamicLink)$/.test(textOr(relationshipType))
}

/** Purposes of packages that are none, in words. */
const PURPOSES: ReadonlyMap<string, string> = new Map([
  ['operatingSystem', SYSTEM],
  ['file', 'a file'],
])

/** Returns a text of an element of the profile of software, whose names JSON-LD may write in two ways. */
function ownText(element: Fields, name: string): string {
  return textOr(element[`software_${name}`] ?? element[`software:${name}`] ?? element[name])
}

function contextVersion({ '@context': context }: Fields): string {
  const [, version = '3.0'] = /\/rdf\/(\d+\.\d+(?:\.\d+)?)\//.exec(textOr(context)) ?? []
  return version
}

/** Reports whether a document is in SPDX 3: a graph of elements, or one element alone with the context of SPDX. */
function isInSpdx3(document: Fields): boolean {
  return Array.isArray(document['@graph']) || isSpdx3(membersIn(document))
}

/** Reports whether a type of an element is as a pattern has it; JSON-LD allows one type, or a list of them. */
function hasType(element: Fields, pattern: RegExp): boolean {
  const type = element['type'] ?? element['@type']
  const types: readonly unknown[] = Array.isArray(type) ? type : [type]
  return types.some((one) => pattern.test(textOr(one)))
}

function idOf(element: Fields): string {
  return textOr(element['spdxId'] ?? element['@id'])
}

function isDescribing(element: Fields): boolean {
  return hasType(element, /^(?:SpdxDocument|(?:software[_:])?Sbom|Bom)$/)
}

function rootsOf({ rootElement }: Fields): string[] {
  return idsOf(rootElement)
}

/** Returns the ids of elements that are named by them, or written there. */
function idsOf(value: unknown): string[] {
  const listed = Array.isArray(value) ? (value as unknown[]) : [value]
  return listed.map((one) => (isObject(one) ? idOf(one) : textOr(one)))
}

/** Package URLs of external identifiers, which are within the package or elements of their own. */
function identifiersOf({ externalIdentifier: listed }: Fields, byId: ReadonlyMap<string, Fields>): string[] {
  const all: readonly unknown[] = Array.isArray(listed) ? listed : [listed]
  return all.flatMap((one) => {
    const fields = typeof one === 'string' ? (byId.get(one) ?? {}) : fieldsOf(one)
    const { externalIdentifierType: type, identifier } = fields
    return type === 'packageUrl' || type === 'purl' ? [textOr(identifier)] : []
  })
}
