import { type Fields, eachObject, fieldsOf } from '../json/objects.ts'
import { type InputSbom, createComponents, eachListed, nameIn, textOr, unreadable } from './sbom.ts'

/** Reads an SPDX 2 document: its packages, with the purls of their external references. Throws `bad_request`. */
export function readSpdx2(document: Fields): Omit<InputSbom, 'enveloped'> {
  const version = textOr(document['spdxVersion'])
  if (!/^SPDX-2\.\d{1,3}$/.test(version))
    throw unreadable(`${version} is not known here: use SPDX 2.3 or 3.0 in JSON`)
  const found = createComponents()
  const subjects = subjectsOf(document)
  const purls: string[] = []
  for (const one of eachListed(document['packages'], 'packages')) {
    const { SPDXID: id, name, versionInfo, externalRefs } = one
    const own = [...eachListed(externalRefs, 'externalRefs')].flatMap(
      ({ referenceType: type, referenceLocator }) =>
        typeof type === 'string' && /(?:^|[/#-])purl$/.test(type) ? [textOr(referenceLocator)] : [],
    )
    if (subjects.has(textOr(id))) for (const purl of own) purls.push(purl)
    found.add({ ref: textOr(id), name: textOr(name), version: textOr(versionInfo) }, own)
  }
  const name = nameIn(document['name'])
  return { format: version.replace('-', ' '), name, subjects: purls, components: found.components }
}

/** Ids of what a document describes. */
function subjectsOf({ documentDescribes, relationships }: Fields): Set<string> {
  const described = Array.isArray(documentDescribes) ? (documentDescribes as unknown[]) : []
  const related = [...eachObject(relationships)].flatMap((one) =>
    one['relationshipType'] === 'DESCRIBES' ? [one['relatedSpdxElement']] : [],
  )
  return new Set([...described, ...related].map(textOr))
}

/** Types of SPDX 3 that are packages: models and data sets are of classes derived from it. */
const PACKAGE = /^(?:software[_:])?Package$|^(?:ai[_:])?AIPackage$|^(?:dataset[_:])?DatasetPackage$/

/**
 * Reads an SPDX 3 document, a list of elements in JSON-LD: its packages (`software_Package`, models and data sets), with their package URL or that
 * of an external identifier. Throws `bad_request`.
 */
export function readSpdx3(document: Fields): Omit<InputSbom, 'enveloped'> {
  const found = createComponents()
  const elements = [...eachListed(document['@graph'], '@graph elements')]
  const byId = new Map(elements.map((one) => [idOf(one), one]))
  const roots = new Set(elements.filter(isDescribing).flatMap(rootsOf))
  const purls: string[] = []
  for (const one of elements) {
    if (!hasType(one, PACKAGE)) continue
    const { software_packageUrl: url, software_packageVersion: version, name } = one
    const own = new Set([textOr(url), ...identifiersOf(one, byId)].filter((purl) => purl !== ''))
    if (roots.has(idOf(one))) for (const purl of own) purls.push(purl)
    found.add({ ref: idOf(one), name: textOr(name), version: textOr(version) }, [...own])
  }
  const about = elements.find((one) => hasType(one, /^SpdxDocument$/))
  const info = elements.find((one) => typeof one['specVersion'] === 'string')
  const version = textOr(info?.['specVersion']) || contextVersion(document)
  if (!/^3\.\d{1,3}(?:\.\d{1,3})?(?:-[\w.]{1,20})?$/.test(version))
    throw unreadable(`SPDX ${version} is not known here: use SPDX 2.3 or 3.0 in JSON`)
  const name = nameIn(about?.['name'])
  return { format: `SPDX ${version}`, name, subjects: purls, components: found.components }
}

function contextVersion({ '@context': context }: Fields): string {
  const [, version = '3.0'] = /\/rdf\/(\d+\.\d+(?:\.\d+)?)\//.exec(textOr(context)) ?? []
  return version
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
  return (Array.isArray(rootElement) ? (rootElement as unknown[]) : [rootElement]).map(textOr)
}

/** Package URLs of external identifiers, which are within the package or elements of their own. */
function identifiersOf(
  { externalIdentifier: listed }: Fields,
  byId: ReadonlyMap<string, Fields>,
): string[] {
  const all: readonly unknown[] = Array.isArray(listed) ? listed : [listed]
  return all.flatMap((one) => {
    const fields = typeof one === 'string' ? (byId.get(one) ?? {}) : fieldsOf(one)
    const { externalIdentifierType: type, identifier } = fields
    return type === 'packageUrl' || type === 'purl' ? [textOr(identifier)] : []
  })
}
