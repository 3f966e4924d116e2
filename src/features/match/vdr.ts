import { signatureText } from '../../base/domain/artifacts/signature.ts'
import { randomUUID } from 'node:crypto'
import { toIso } from '../../base/time.ts'
import { VERSION } from '../../base/version.ts'
import { donePatches, isFixable } from './judging/patches.ts'
import type { MatchFinding, MatchedComponent, SuppressedFinding } from './judging/finding.ts'
import { foundByWords, notesOf, unjudgedWords } from './notes.ts'
import type { MatchResult } from './result.ts'
import { type Severity, ratingOf } from '../../documents/records/severity.ts'

/** Methods of ratings in CycloneDX, by the types of severities in OSV. */
const METHODS: ReadonlyMap<string, string> = new Map([
  ['CVSS_V2', 'CVSSv2'],
  ['CVSS_V3', 'CVSSv3'],
  ['CVSS_V4', 'CVSSv4'],
])

/**
 * Returns the findings as a vulnerability disclosure report: a CycloneDX 1.6 document of the vulnerable components and their
 * vulnerabilities, each with the components that it affects. `now`: Unix milliseconds.
 */
export function vulnerabilityReport(result: MatchResult, now: number): object {
  const { sbom, snapshot, findings, suppressed } = result
  const components = new Set([...findings, ...suppressed].map(({ component }) => component))
  const refs = referencesOf(components)
  const properties = Object.entries(snapshot).flatMap(([name, value]) =>
    value === null ? [] : [{ name: `patchmirror:snapshot:${name}`, value: String(value) }],
  )
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    serialNumber: `urn:uuid:${randomUUID()}`,
    metadata: {
      timestamp: toIso(now),
      tools: { components: [{ type: 'application', name: 'patchmirror', version: VERSION }] },
      ...(sbom.name !== '' && { component: { type: 'application', name: sbom.name } }),
      properties: [...properties, ...gapProperties(result), ...noteProperties(result), ...notJudgedProperties(result)],
    },
    components: [...components].map((one) => componentOf(one, refs.get(one) ?? '')),
    vulnerabilities: [
      ...[...Map.groupBy(findings, ({ id }) => id).values()].map((ones) => vulnerabilityOf(ones, refs, 'affected')),
      ...[...Map.groupBy(suppressed, keyOf).values()].map((ones) => ({
        ...vulnerabilityOf(ones, refs, 'unaffected'),
        analysis: analysisOf(ones),
      })),
    ],
  }
}

/** CycloneDX has no place for what the mirror does not know, nor for what was not judged, which is counted by its reason. */
function gapProperties({ gaps }: MatchResult) {
  return gaps.map(({ code, reason }) => ({ name: `patchmirror:gap:${code}`, value: reason }))
}

function noteProperties(result: MatchResult) {
  return notesOf(result).map((value) => ({ name: 'patchmirror:note', value }))
}

function notJudgedProperties({ notJudged }: MatchResult) {
  return unjudgedWords(notJudged).map(({ count, reason, names }) => ({
    name: 'patchmirror:notJudged',
    value: `${count}: ${reason} (${names})`,
  }))
}

type Refs = ReadonlyMap<MatchedComponent, string>

/** Returns a unique reference of each component: the purl, or what the SBOM calls it. */
function referencesOf(components: Iterable<MatchedComponent>): Refs {
  const used = new Map<string, number>() // with the last number of each
  const refs = new Map<MatchedComponent, string>()
  for (const one of components) {
    const wanted = one.purl ?? one.refs[0] ?? one.name
    let ref = wanted
    let number = used.get(wanted) ?? 1
    while (used.has(ref)) ref = `${wanted}#${++number}`
    used.set(ref, 1)
    used.set(wanted, number)
    refs.set(one, ref)
  }
  return refs
}

function componentOf({ name, version, purl }: MatchedComponent, ref: string): object {
  return { type: 'library', 'bom-ref': ref, name, version, ...(purl !== null && { purl }) }
}

/** Findings with equal statements are one vulnerability of the report. */
function keyOf({ id, vex }: SuppressedFinding): string {
  const { status, justification, note, document } = vex
  return JSON.stringify([id, status, justification, note, document])
}

/** Justifications of CycloneDX, by those of OpenVEX; those of a statement in CycloneDX stay. */
const JUSTIFICATIONS: ReadonlyMap<string, string> = new Map([
  ['component_not_present', 'code_not_present'],
  ['vulnerable_code_not_present', 'code_not_present'],
  ['vulnerable_code_not_in_execute_path', 'code_not_reachable'],
  ['inline_mitigations_already_exist', 'protected_by_mitigating_control'],
  ...[
    ...['code_not_present', 'code_not_reachable', 'requires_configuration', 'requires_dependency'],
    ...['requires_environment', 'protected_by_compiler', 'protected_at_runtime'],
    ...['protected_at_perimeter', 'protected_by_mitigating_control'],
  ].map((own): [string, string] => [own, own]),
])

function analysisOf([first]: readonly SuppressedFinding[]): object {
  const { status = 'fixed', justification = '', note = '', document = '' } = first?.vex ?? {}
  const signature = first?.vex.signature ?? null
  const signed = signature === null ? '' : `, signature ${signatureText(signature)}`
  const known = JUSTIFICATIONS.get(justification)
  return {
    state: status === 'fixed' ? 'resolved' : 'not_affected',
    ...(status === 'not_affected' && known !== undefined && { justification: known }),
    detail: [justification, note, `VEX document ${document}${signed}`].filter((one) => one !== '').join(': '),
  }
}

function vulnerabilityOf(ones: readonly MatchFinding[], refs: Refs, status: 'affected' | 'unaffected'): object {
  const [first] = ones
  if (first === undefined) return {}
  const { id, aliases, summary, severity } = first
  const ratings = ratingsOf(severity)
  return {
    id,
    source: { name: 'OSV' },
    ...(aliases.length > 0 && {
      references: aliases.map((alias) => ({ id: alias, source: { name: 'OSV' } })),
    }),
    ...(ratings.length > 0 && { ratings }),
    ...(summary !== '' && { description: summary }),
    ...(ones.some(isFixable) && { recommendation: recommend(ones) }),
    affects: ones.map(({ component }) => ({
      ref: refs.get(component),
      versions: [{ version: component.version, status }],
    })),
    ...sourceProperties(ones, refs),
  }
}

/** CycloneDX has no place for the source package by which a component was found. */
function sourceProperties(ones: readonly MatchFinding[], refs: Refs): object {
  const bySource = ones.filter(({ source }) => source !== null)
  if (bySource.length === 0) return {}
  const properties = bySource.map((one) => ({
    name: 'patchmirror:foundBy',
    value: `${refs.get(one.component) ?? ''}: ${foundByWords(one)}`,
  }))
  return { properties }
}

/** A vector is rated by its own score; where the record's word is of another level, that is a rating of its own. */
function ratingsOf(severity: Severity): object[] {
  const { word, scoreLevel, stated } = severity
  const vectors = stated.flatMap((one) => {
    const { type, score: vector } = one
    const method = vector.startsWith('CVSS:3.1/') ? 'CVSSv31' : METHODS.get(type)
    if (method === undefined) return []
    const rating = ratingOf(one)
    if (rating === null) return [{ method, vector }]
    return [{ severity: rating.level, score: rating.score, method, vector }]
  })
  const isOther = word !== null && word !== scoreLevel
  return [...vectors, ...(isOther ? [{ severity: word, method: 'other' }] : [])]
}

function recommend(ones: readonly MatchFinding[]): string {
  return ones
    .flatMap((one) => {
      const { name, version } = one.component
      const texts = [
        ...(one.fixed.length > 0 ? [`fixed in ${one.fixed.join(', ')}`] : []),
        ...donePatches(one).map(({ ticket }) => `patched by the service (${ticket})`),
      ]
      return texts.length === 0 ? [] : [`${name} ${version}: ${texts.join(', ')}`]
    })
    .join('; ')
}
