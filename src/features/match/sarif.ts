import { sha256Hex } from '../../base/digest.ts'
import { counted } from '../../base/text.ts'
import { VERSION } from '../../base/version.ts'
import { signatureText } from '../../base/domain/artifacts/signature.ts'
import type { MatchFinding, SuppressedFinding } from './judging/finding.ts'
import type { VexReason } from '../../documents/vex/apply.ts'
import { foundByWords, notesOf, unjudgedWords } from './notes.ts'
import type { MatchResult } from './result.ts'
import { type Level, disagrees } from '../../documents/records/severity.ts'

/** Levels of results in SARIF. */
const RESULT_LEVELS: Readonly<Record<Level, 'error' | 'warning' | 'note'>> = {
  critical: 'error',
  high: 'error',
  medium: 'warning',
  low: 'note',
  none: 'note',
}

/** Returns the findings in SARIF 2.1.0; `file`: the SBOM, as its place is shown. */
export function sarifReport(result: MatchResult, file: string): object {
  const { snapshot, suppressed } = result
  const findings: readonly Reported[] = [...result.findings, ...suppressed]
  const rules = [...Map.groupBy(findings, ({ id }) => id)]
  const indexes = new Map(rules.map(([id], at) => [id, at]))
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'patchmirror',
            version: VERSION,
            rules: rules.map(([id, ones]) => ruleOf(id, ones)),
          },
        },
        results: findings.map((one) => resultOf(one, indexes.get(one.id) ?? -1, file)),
        invocations: [
          {
            executionSuccessful: true,
            toolExecutionNotifications: notificationsOf(result),
          },
        ],
        properties: { snapshot },
      },
    ],
  }
}

type Reported = MatchFinding & Partial<Pick<SuppressedFinding, 'vex'>>

function ruleOf(id: string, [first]: readonly MatchFinding[]): object {
  const { summary = '', severity, aliases = [] } = first ?? {}
  const { score = null, level = null } = severity ?? {}
  return {
    id,
    shortDescription: messageOf(summary === '' ? id : summary),
    properties: {
      ...(score !== null && { 'security-severity': score.toFixed(1) }),
      ...(level !== null && { severity: level }),
      ...(severity !== undefined && disagrees(severity) && { severityWord: severity.word }),
      tags: [...new Set(['security', 'vulnerability', ...aliases])], // each once (SARIF 2.1.0, 3.8.2)
    },
  }
}

function resultOf(finding: Reported, ruleIndex: number, file: string): object {
  const { id, component, fixed, severity, vex } = finding
  const { name, version, purl } = component
  const fix = fixed.length === 0 ? 'no fixed version is known' : `fixed in ${fixed.join(', ')}`
  const foundBy = foundByWords(finding)
  const place = purl ?? `${name}@${version}`
  return {
    ruleId: id,
    ruleIndex,
    level: severity.level === null ? 'warning' : RESULT_LEVELS[severity.level],
    message: messageOf(
      `${name} ${version} is affected by ${id}; ${[foundBy, fix].filter((one) => one !== '').join('; ')}`,
    ),
    locations: [
      {
        physicalLocation: { artifactLocation: { uri: uriOf(file) } },
        logicalLocations: [{ fullyQualifiedName: place, kind: 'module' }],
      },
    ],
    ...propertiesOf(finding),
    suppressions: vex === undefined ? [] : [suppressionOf(vex)],
    partialFingerprints: { 'patchmirror/v1': sha256Hex(`${id}\n${place}\n${version}`) },
  }
}

function propertiesOf({ patches, source, component }: Reported): object {
  const { release } = component
  if (patches.length === 0 && source === null && release === null) return {}
  const sourcePackage = source === null ? {} : { sourcePackage: source }
  const known = release === null ? {} : { release: release.name }
  return { properties: { ...(patches.length > 0 && { patches }), ...sourcePackage, ...known } }
}

/** A path as a reference: a `#` or a `:` in it is part of a name. */
function uriOf(file: string): string {
  return file.split('/').map(encodeURIComponent).join('/')
}

/** A statement of VEX; SARIF has a place for one text. */
function suppressionOf(reason: VexReason): object {
  const { status, justification, note, product, document, signature } = reason
  const reasons = [status, justification, note].filter((text) => text !== '').join(': ')
  const signed = signature === null ? '' : `, signature ${signatureText(signature)}`
  return {
    kind: 'external',
    status: 'accepted',
    justification: `VEX for ${product} (document ${document}${signed}): ${reasons}`,
  }
}

function notificationsOf(result: MatchResult): object[] {
  const { notJudged, gaps } = result
  const reasons = unjudgedWords(notJudged).map(({ count, reason, names }) => {
    return `${counted(count, 'component was', 'components were')} not judged, or not completely (${names}): ${reason}`
  })
  const texts = [...gaps.map(({ reason }) => reason), ...notesOf(result), ...reasons]
  return texts.map((text) => ({ level: 'warning', message: messageOf(text) }))
}

/** A message of names that others chose: `[text](address)` in it would be shown as a link (SARIF 2.1.0, 3.11.6). */
function messageOf(text: string): object {
  return { text: text.replace(/\[(?=[^\]]*\]\()/g, '\\[') }
}
