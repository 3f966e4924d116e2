import type { Status } from '../../../base/reports/status.ts'
import type { Config } from '../../../config/schema.ts'
import { isLocked } from '../../../store/database/lock.ts'
import { whyUnread } from '../../../store/database/unread.ts'
import { daemonUrl, withTakenPort } from '../../daemon-client.ts'
import { type GlobalOptions, firstStep, print, settings, warn } from '../../context.ts'
import { codeWithoutData, parseMaxAge, statusCode } from './code.ts'
import { describeWebhooks } from './webhooks.ts'
import { watch } from '../watch.ts'
import { table, timeOf } from '../../output.ts'
import { duration } from '../../../base/time.ts'
import { describeOsvScope } from '../../../base/domain/osv-scope.ts'
import { describeRunProgress } from '../../../base/domain/progress.ts'
import type { Feature } from '../../../daemon/feature.ts'
import { FLEET_PAUSED, describeLeaderless } from '../../../base/domain/status.ts'
import type { FleetStatus } from '../../../base/reports/fleet.ts'
import { type GatheredStatus, gatherStatus } from './gather.ts'
import {
  describeBoxes,
  describeBundle,
  describeCompared,
  describeFindings,
  describeLists,
  describeProblems,
  describeRegistry,
  describeSignatures,
  describeSourcesMissing,
  describeVerified,
  describeViews,
} from './lines.ts'

/** Options of `patchmirror status`. */
interface StatusCommandOptions extends GlobalOptions {
  json?: boolean
  /** Such as `26h`: exit 3 when a source is older. */
  maxAge?: string
  watch?: boolean
}

/** `patchmirror status`: the daemon's own report when one runs, else the same from the data folder. Names lost files, and needs none. */
export async function statusCommand(options: StatusCommandOptions, features: readonly Feature[]): Promise<number> {
  const { config, unread } = settings(options, false, [])
  for (const problem of unread) warn(problem)
  const maxAgeHours = options.maxAge === undefined ? null : parseMaxAge(options.maxAge)
  const isJson = options.json === true
  const show = async (): Promise<number> =>
    showStatus(config, { features, isJson, indent: options.watch === true ? 0 : 2, maxAgeHours })
  return options.watch === true ? watch(show) : show().catch((error: unknown) => codeWithoutData(error, config))
}

interface Shown {
  readonly features: readonly Feature[]
  readonly isJson: boolean
  /** Of the JSON; 0 writes each report on one line. */
  readonly indent: number
  /** Limit of `--max-age`; null: none. */
  readonly maxAgeHours: number | null
}

/** Prints the status once; returns the exit code. */
async function showStatus(config: Config, shown: Shown): Promise<number> {
  const { status, from } = await gatherStatus(config)
  const ofFeatures = from === 'daemon' ? [] : await linesOfFeatures(config, shown.features)
  if (status === null) {
    for (const line of ofFeatures) process.stderr.write(`patchmirror: ${line}\n`)
    throw whyUnread(config.data.dir, `nothing is mirrored yet in ${config.data.dir}: ${firstStep(config)}`)
  }
  if (shown.isJson) print(JSON.stringify(status, null, shown.indent))
  else printReport(config, { status, from, ofFeatures })
  return statusCode(status, config, shown.maxAgeHours)
}

async function linesOfFeatures(config: Config, features: readonly Feature[]): Promise<readonly string[]> {
  const parts = await Promise.all(features.map(async ({ commands }) => commands?.()))
  return parts.flatMap((part) => part?.statusLines?.(config) ?? [])
}

interface Printed {
  readonly status: Status
  /** Where it was read, `stranger` when another data folder's daemon answered. */
  readonly from: GatheredStatus['from']
  /** Lines that features add. */
  readonly ofFeatures: readonly string[]
}

/** Prints the report for people: below the sources what is wrong, then what else is known. */
function printReport(config: Config, { status, from, ofFeatures }: Printed): void {
  print(tableOf(status))
  const wrong = [
    ...(from === 'daemon' ? [] : [`${describeSilence(config, from === 'stranger')}; read from the data folder`]),
    ...describeProblems(status, config),
  ]
  if (wrong.length > 0) print(`\n${wrong.join('\n')}\n`)
  for (const { name, progress } of status.sources)
    if (progress) print(`${name}: the run in progress is ${describeRunProgress(progress)}`)
  for (const line of describeCompared(status, config, from)) print(line)
  for (const { name, scope } of status.sources)
    if (scope) print(`${name}: only records in scope are mirrored (${describeOsvScope(scope)})`)
  for (const line of describeSourcesMissing(status)) print(line)
  for (const line of describeLists(status)) print(line)
  for (const line of [...describeSignatures(status), ...describeVerified(status)]) print(line)
  if (status.bundle !== null) print(`\n${describeBundle(status.bundle)}`)
  for (const line of [...describeBoxes(status), ...describeRegistry(config, status), ...ofFeatures]) print(line)
  if (status.fleet !== undefined) for (const line of describeFleet(status.fleet)) print(line)
  for (const line of (status.views ?? []).map(describeViews)) print(line)
  const judgedLine = describeFindings(config, status)
  if (judgedLine !== null) print(judgedLine)
  const webhookLines = status.webhooks === undefined ? null : describeWebhooks(status.webhooks)
  if (webhookLines !== null) print(`\n${webhookLines}`)
}

/** Says that the daemon of the data folder did not answer, and what to do. */
function describeSilence(config: Config, isStranger: boolean): string {
  const { server } = withTakenPort(config)
  const url = daemonUrl(server)
  if (isStranger) return `the mirror of another data folder answers on ${url}: "patchmirror doctor" says what to do`
  const isUnknown = server.port === 0 && server.socket === null
  const who = isUnknown ? 'no daemon serves the data folder' : `no daemon answers on ${url}`
  const isRunning = isLocked(config.data.dir, 'serve')
  return `${who}: ${isRunning ? 'one runs, and "patchmirror doctor" says why' : 'start it with "patchmirror serve"'}`
}

function tableOf({ sources }: Status): string {
  const rows = sources.map((source) => [
    source.name,
    source.state,
    source.snapshot === null ? '-' : String(source.records),
    source.snapshot?.slice(0, 12) ?? '-',
    source.asOf === null ? '-' : timeOf(Date.parse(source.asOf)),
    ageCell(source),
    source.nextRunAt === null ? '-' : timeOf(Date.parse(source.nextRunAt)),
    source.lastRun?.message ?? '',
  ])
  const head = ['source', 'state', 'records', 'snapshot', 'as of', 'age', 'next run', 'last run']
  return table(head, rows)
}

/** An age that is not known is explained below the table. */
function ageCell({ asOf, ageSeconds }: Status['sources'][number]): string {
  if (asOf === null) return '-'
  return ageSeconds === null ? 'unknown' : duration(ageSeconds)
}

/** Returns the lines of `patchmirror status` on the part of a mirror in its fleet. */
function describeFleet(fleet: FleetStatus): string[] {
  const { role, seen, served, lagSeconds, failing, holdingBackSince } = fleet
  const at = (time: string): string => timeOf(Date.parse(time))
  const what = served === 0 ? 'no generation is served yet' : `generation ${served} is served`
  const newest = seen > served ? `, ${seen} is published` : ''
  const lag = lagSeconds !== null && lagSeconds > 0 ? `, ${lagSeconds} s behind` : ''
  const since = fleet.publishedAt === null ? '' : `, published on ${at(fleet.publishedAt)}`
  return [
    `fleet: ${fleet.name} (${role}) ${leadWords(fleet)}`,
    `fleet: ${what}${newest}${lag}${since}, from ${fleet.url}`,
    ...(fleet.paused ? [`fleet: ${FLEET_PAUSED}`] : []),
    ...(holdingBackSince === null
      ? []
      : [`fleet: newer snapshots are stored since ${at(holdingBackSince)} and not served by the fleet yet`]),
    ...(failing === null ? [] : [`fleet: failing since ${at(failing.since)}: ${failing.message}`]),
  ]
}

/** Returns whether the mirror leads its fleet, or which one does, in words. */
function leadWords(fleet: FleetStatus): string {
  const { leads, leader, epoch } = fleet
  if (leads) return `leads (epoch ${epoch})`
  if (leader === null) return `follows; ${describeLeaderless(fleet)}`
  return `follows; ${leader.name} leads (epoch ${leader.epoch})`
}
