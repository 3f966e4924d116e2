import { type Fields, eachObject, fieldsOf } from '../../../base/json/objects.ts'
import { clip, shortText } from '../cells.ts'
import { contentsIn } from './unwrap.ts'

/** A component of an SBOM; '' for what it does not name. */
export interface Component {
  readonly name: string
  readonly version: string
  readonly type: string
  readonly purl: string
  readonly licences: string
}

/** What a page shows of an SBOM. */
export interface Sbom {
  /** Format and its version: `CycloneDX 1.5`, `SPDX-2.3`. */
  readonly format: string
  /** What it describes. */
  readonly subject: string
  readonly createdAt: string
  readonly components: readonly Component[]
  /** Number of components in the document; `components` has at most `MOST_COMPONENTS`. */
  readonly total: number
}

/** Components of a document that are read. */
const MOST_COMPONENTS = 20_000
/** Components within components that are read. */
const MAX_DEPTH = 8

/** Reads CycloneDX and SPDX, also in attestations; null for anything else. */
export function readSbom(value: unknown): Sbom | null {
  const [found] = contentsIn(value, (fields) => readerOf(fields) !== null)
  return found === undefined ? null : (readerOf(found)?.(found) ?? null)
}

function readerOf(fields: Fields): ((fields: Fields) => Sbom) | null {
  const { bomFormat, spdxVersion } = fields
  if (bomFormat === 'CycloneDX') return readCycloneDx
  if (typeof spdxVersion === 'string') return readSpdx
  return Array.isArray(fields['@graph']) ? readSpdx3 : null
}

function readCycloneDx(bom: Fields): Sbom {
  const metadata = fieldsOf(bom['metadata'])
  const gathered: Gathered = { components: [], total: 0 }
  gather(bom['components'], 0, gathered)
  const subject = fieldsOf(metadata['component'])
  return {
    format: `CycloneDX ${shortText(bom['specVersion'], 20)}`,
    ...gathered,
    subject: [subject['name'], subject['version']]
      .map((one) => shortText(one))
      .join(' ')
      .trim(),
    createdAt: shortText(metadata['timestamp'], 60),
  }
}

interface Gathered {
  components: Component[]
  total: number
}

function gather(value: unknown, depth: number, gathered: Gathered): void {
  for (const one of eachObject(value)) {
    gathered.total++
    if (gathered.components.length < MOST_COMPONENTS) gathered.components.push(componentOf(one))
    if (depth < MAX_DEPTH) gather(one['components'], depth + 1, gathered)
  }
}

function componentOf({ group, name, version, type, purl, licenses }: Fields): Component {
  const prefix = shortText(group)
  return {
    name: clip(prefix === '' ? shortText(name) : `${prefix}/${shortText(name)}`),
    version: shortText(version),
    type: shortText(type, 40),
    purl: shortText(purl, 500),
    licences: [...eachObject(licenses)]
      .slice(0, 10)
      .map(({ license, expression }) => {
        const { id, name } = fieldsOf(license)
        return shortText(expression ?? id ?? name)
      })
      .join(', '),
  }
}

function readSpdx(document: Fields): Sbom {
  const packages = [...eachObject(document['packages'])]
  return {
    format: shortText(document['spdxVersion'], 20),
    subject: shortText(document['name']),
    createdAt: shortText(fieldsOf(document['creationInfo'])['created'], 60),
    components: packages.slice(0, MOST_COMPONENTS).map(spdxComponent),
    total: packages.length,
  }
}

function spdxComponent(one: Fields): Component {
  const purl = [...eachObject(one['externalRefs'])].find(({ referenceType }) => referenceType === 'purl')
  const { licenseConcluded, licenseDeclared, primaryPackagePurpose } = one
  const licence = [licenseConcluded, licenseDeclared].find(isStated)
  return {
    name: shortText(one['name']),
    version: shortText(one['versionInfo']),
    type: shortText(primaryPackagePurpose, 40).toLowerCase(),
    purl: shortText(purl?.['referenceLocator'], 500),
    licences: shortText(licence),
  }
}

function isStated(licence: unknown): boolean {
  return typeof licence === 'string' && licence !== 'NOASSERTION' && licence !== 'NONE'
}

/** SPDX 3: packages are elements of a graph, and the names of their members contain the profile. */
function readSpdx3(document: Fields): Sbom {
  const elements = [...eachObject(document['@graph'])]
  const packages = elements.filter(({ type }) => type === 'software_Package')
  const info = elements.find(({ type }) => type === 'CreationInfo') ?? {}
  const described = elements.find(({ type }) => type === 'SpdxDocument') ?? {}
  return {
    format: `SPDX-${shortText(info['specVersion'], 20)}`,
    subject: shortText(described['name']),
    createdAt: shortText(info['created'], 60),
    components: packages.slice(0, MOST_COMPONENTS).map((one) => ({
      name: shortText(one['name']),
      version: shortText(one['software_packageVersion']),
      type: shortText(one['software_primaryPurpose'], 40),
      purl: shortText(one['software_packageUrl'], 500),
      licences: '',
    })),
    total: packages.length,
  }
}
