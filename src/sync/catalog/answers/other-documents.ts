import { type Fields, isObject } from '../../../base/json/objects.ts'
import { isDocumentValue } from './kind-check.ts'

/** Returns whether an object is itself a document of a kind that is known, also one that no path of the catalog has. */
export function isKnownDocument(value: Fields): boolean {
  if (isDocumentValue('sbom', value) || isDocumentValue('vex', value)) return true
  if (isDocumentValue('provenance', value)) return true
  if ('@context' in value || isOfSchema(value)) return true
  return FORMS.some((form) => form(value))
}

/** Formats that name their schema in a document. */
const SCHEMA = /cyclonedx|spdx|csaf|openvex|in-?toto|slsa|sarif|syft|grype|osv|rolie/i

function isOfSchema(value: Fields): boolean {
  return ['$schema', 'schema', 'predicateType'].some((name) => {
    const schema = value[name]
    const text = isObject(schema) ? schema['url'] : schema
    return typeof text === 'string' && SCHEMA.test(text)
  })
}

/** The forms of documents that do not name their kind, and of those of other tools. */
const FORMS: readonly ((value: Fields) => boolean)[] = [
  // CycloneDX without its name
  (value) => 'specVersion' in value && isAny(value, 'components', 'metadata', 'vulnerabilities'),
  // SPDX without its version
  (value) => 'SPDXID' in value || 'documentNamespace' in value,
  // Syft and Grype
  (value) => 'descriptor' in value && isAny(value, 'artifacts', 'matches', 'source'),
  (value) => Array.isArray(value['artifacts']) && isAny(value, 'artifactRelationships', 'distro'),
  // Trivy
  (value) => 'SchemaVersion' in value && isAny(value, 'Results', 'ArtifactName'),
  // OSV
  (value) => 'id' in value && Array.isArray(value['affected']) && isAny(value, 'modified', 'schema_version'),
  // ROLIE
  (value) => isObject(value['feed']) && Array.isArray(value['feed']['entry']),
  // SARIF
  (value) => Array.isArray(value['runs']) && 'version' in value,
  // OpenVEX, SLSA and in-toto without their context
  (value) => Array.isArray(value['statements']) && isAny(value, 'author', 'timestamp'),
  (value) => isAny(value, 'subject', 'predicate') && 'predicateType' in value,
]

function isAny(value: Fields, ...names: readonly string[]): boolean {
  return names.some((name) => name in value)
}

/** Values that are no links which an answer has beside its links, at most; more only where there are many links. */
const MAX_VALUES = 200
const VALUES_OF_LINK = 8
/** Nesting down to which an answer may be an envelope of links. */
const MAX_DEPTH = 12

/** Returns whether a JSON answer is larger or nested deeper than what a service puts around links. */
export function isTooLarge(value: unknown): boolean {
  let links = 0
  let others = 0
  const isDeep = (inner: unknown, depth: number): boolean => {
    if (typeof inner !== 'object' || inner === null) {
      if (typeof inner === 'string' && inner.includes('/')) links++
      else others++
      return false
    }
    if (depth > MAX_DEPTH) return true
    return Object.values(inner).some((one) => isDeep(one, depth + 1))
  }
  if (isDeep(value, 0)) return true
  return others > MAX_VALUES && others > VALUES_OF_LINK * links
}
