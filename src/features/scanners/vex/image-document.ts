import { sha256Hex } from '../../../base/digest.ts'
import { stampOf } from '../../../base/time.ts'
import { type AskedImage, type ImageStatement, countingStatements } from './image-statements.ts'
import { imagePurl } from '../../../documents/vex/images.ts'
import { plainId, rulesOut } from '../../../documents/vex/statement.ts'

/** Justifications of CycloneDX in the words of OpenVEX. */
const JUSTIFICATIONS: ReadonlyMap<string, string> = new Map([
  ['code_not_present', 'vulnerable_code_not_present'],
  ['code_not_reachable', 'vulnerable_code_not_in_execute_path'],
  ['requires_configuration', 'vulnerable_code_cannot_be_controlled_by_adversary'],
  ['requires_dependency', 'vulnerable_code_cannot_be_controlled_by_adversary'],
  ['requires_environment', 'vulnerable_code_cannot_be_controlled_by_adversary'],
  ['protected_by_compiler', 'inline_mitigations_already_exist'],
  ['protected_at_runtime', 'inline_mitigations_already_exist'],
  ['protected_at_perimeter', 'inline_mitigations_already_exist'],
  ['protected_by_mitigating_control', 'inline_mitigations_already_exist'],
])
const OWN_WORDS = /^(?:component_not_present|inline_mitigations_already_exist|vulnerable_code_\w+)$/

/** What a document is made with beside the statements. */
interface DocumentParts {
  /** Further names of the image. */
  readonly repositories: readonly string[]
  /** Whether the components are products as well, for clients that know an SBOM by its components alone. */
  readonly withComponents?: boolean
  /** Why statements may be missing; null: nothing is known to be. The format has no field for that. */
  readonly incomplete: string | null
}

const ROLE = 'What counts of the mirrored statements about one image, put together by a mirror'

/**
 * Makes one OpenVEX document of what counts about an image. Its products name the image by its digest in the forms that scanners
 * compare, and never a component alone: it says nothing of other images.
 */
export function imageDocument(
  image: AskedImage,
  all: readonly ImageStatement[],
  { repositories, withComponents = false, incomplete }: DocumentParts,
): object {
  const counting = countingStatements(all, image.digest)
  const names = [...new Set([...image.tags.map(({ repository }) => repository), ...repositories])]
  const grouped = Map.groupBy(counting, keyOf)
  const made = [...grouped.values()].map((ones) => statementOf(ones, image, names, withComponents))
  const sorted = made.map((one) => ({ one, key: JSON.stringify(one) })).sort((a, b) => (a.key < b.key ? -1 : 1))
  const newest = counting.reduce((latest, { at }) => (at > latest ? at : latest), '')
  const role = incomplete === null ? ROLE : `${ROLE}. Statements may be missing: ${incomplete}`
  return {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    '@id': `urn:sha256:${sha256Hex([...sorted.map(({ key }) => key), incomplete ?? []].flat().join('\n'))}`,
    author: 'Patchmirror',
    role,
    timestamp: newest === '' ? '1970-01-01T00:00:00Z' : stampOf(newest),
    version: 1,
    statements: sorted.map(({ one }) => one),
  }
}

/** What statements have in common that are written as one, with all their components. */
function keyOf({ vulnerabilities, statement, document, digest, part, at }: ImageStatement): string {
  const { status, justification, note } = statement
  const said = [vulnerabilities, status, justification, note, at]
  return JSON.stringify([said, document, digest, part === null])
}

function statementOf(
  ones: readonly ImageStatement[],
  image: AskedImage,
  names: readonly string[],
  withComponents: boolean,
): object {
  const [first] = ones
  if (first === undefined) return {}
  const { statement, vulnerabilities, document, digest, at } = first
  const [name = '', ...aliases] = [...new Set(vulnerabilities.map(plainId))]
  const parts = [...new Set(ones.flatMap(({ part }) => part ?? []))].sort()
  const subcomponents = parts.map((part) => ({ '@id': part }))
  const products = productsOf(digest, image, names).map((id) =>
    subcomponents.length === 0 ? { '@id': id } : { '@id': id, subcomponents },
  )
  return {
    vulnerability: aliases.length === 0 ? { name } : { name, aliases },
    ...(at !== '' && { timestamp: stampOf(at) }),
    products: withComponents ? [...products, ...subcomponents] : products,
    status: statement.status === '' ? 'under_investigation' : statement.status,
    ...wordsOf(statement),
    status_notes: `stated in the document sha256:${document}`,
  }
}

/** `not_affected` takes a justification or a text, `affected` a text. */
function wordsOf({ status, justification, note }: ImageStatement['statement']): object {
  const known = OWN_WORDS.test(justification) ? justification : JUSTIFICATIONS.get(justification)
  const text = note === '' ? justification : note
  if (status === 'affected') return { action_statement: text === '' ? 'none stated' : text }
  if (status !== 'not_affected') return text === '' || !rulesOut(status) ? {} : { impact_statement: text }
  const isTextNeeded = known === undefined
  return {
    ...(known !== undefined && { justification: known }),
    ...(text !== '' && text !== known && { impact_statement: text }),
    ...(isTextNeeded && text === '' && { impact_statement: 'none stated' }),
  }
}

/** The forms in which scanners name an image: package URLs without and with a repository, and the digest alone. */
function productsOf(digest: string, image: AskedImage, names: readonly string[]): string[] {
  const isPlatform = digest !== image.digest
  const architectures = image.tags
    .flatMap(({ images }) => images)
    .flatMap((one) => (one.digest === digest && one.arch !== '' ? [one.arch] : []))
  const repositories = names.length === 0 ? [''] : names
  const forms = repositories.flatMap((repository) => {
    const purl = imagePurl(repository, digest)
    const isFull = /^[^/]+[.:][^/]*\//.test(repository)
    const full = isFull ? [`${purl}?repository_url=${encodeURIComponent(repository)}`] : []
    // Of an index, clients name the platform beside its digest.
    const ofIndex = isPlatform
      ? architectures.map((arch) => `${imagePurl(repository, image.digest)}?arch=${encodeURIComponent(arch)}`)
      : []
    return [purl, ...full, ...ofIndex]
  })
  return [...new Set([...forms, digest.replace(/^sha\d+:/, '')])]
}
