import { reportedRole } from '../readers.ts'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256Hex } from '../../../base/digest.ts'
import { messageOf } from '../../../base/errors.ts'
import { toIso } from '../../../base/time.ts'
import type { Config } from '../../../config/schema.ts'
import { fleetTrust } from '../../bundles/format/keys.ts'
import { whyGenerationRefused } from '../generations/format/refusals.ts'
import { inspectStore } from '../generations/inspect.ts'
import { type StoredLease, endOf, fetchLease } from '../lease/lease.ts'
import type { ObjectStore } from '../objects/object-store.ts'
import { openObjectStore } from '../objects/open-store.ts'
import { type ProbeCheck, type ProbeOptions, type ProbeReport, probeReading, probeStore } from '../objects/probe.ts'
import { makeTemporary } from '../../../store/temporary.ts'
import { type GlobalOptions, print, printJson, settings, warn } from '../../../cli/context.ts'
import { table } from '../../../cli/output.ts'

/** Options of `patchmirror fleet check`. */
interface CheckOptions extends GlobalOptions {
  json?: boolean
}

/** Smallest part of an upload that stores accept, bytes; the object that is tried has a second part of one byte. */
const PART_BYTES = 5 << 20

/**
 * `patchmirror fleet check`: tries what a fleet needs of its object store. Exits with 0 when this mirror can use it in its role, 2
 * when the store cannot decide which mirror leads, or cannot be used at all, 1 when it lost what this data folder followed, or the
 * newest generation names.
 */
export async function fleetCheckCommand(options: CheckOptions): Promise<number> {
  const { config } = settings(options, false, ['bundle.signingKeys', 'bundle.trustedKeys', 'fleet'])
  const { fleet } = config
  const store = await openObjectStore(fleet, undefined, {
    singleBytes: PART_BYTES,
    partBytes: PART_BYTES,
  })
  try {
    const report =
      fleet.role === 'reader' ? await probeReading(store) : await withLargeFile((large) => probeStore(store, { large }))
    const { check, doubts } = await inspected(store, config)
    const checks = [...report.checks, check, await leaseCheck(store)]
    const isUsable = report.store && (report.lease || fleet.soleWriter || fleet.role === 'reader')
    if (options.json === true) printJson({ ...facts(store, fleet, { ...report, checks }, isUsable), doubts })
    else print(describe(checks))
    for (const doubt of doubts) warn(doubt)
    const refusal = refusalOf(fleet, report)
    if (refusal !== null) warn(refusal)
    if (!isUsable) return 2
    return doubts.length === 0 ? 0 : 1
  } finally {
    store.close()
  }
}

async function withLargeFile<T>(work: (large: NonNullable<ProbeOptions['large']>) => Promise<T>): Promise<T> {
  const temporary = makeTemporary(tmpdir())
  try {
    const file = join(temporary.folder, 'large')
    const bytes = Buffer.alloc(PART_BYTES + 1)
    writeFileSync(file, bytes)
    return await work({ file, size: bytes.length, sha256: sha256Hex(bytes) })
  } finally {
    temporary.remove()
  }
}

/** Whether the store has what this data folder followed, and what the newest generation names; it is only read. */
async function inspected(
  store: ObjectStore,
  config: Config,
): Promise<{ check: ProbeCheck; doubts: readonly string[] }> {
  const made = (found: string, doubts: readonly string[]) => {
    const state = doubts.length === 0 ? 'ok' : 'failed'
    return { check: { name: 'generations', found, state, needed: 'store' }, doubts } as const
  }
  try {
    const { newest, doubts } = await inspectStore(store, fleetTrust(config, Date.now), config.data.dir)
    return made(newest === null ? 'none' : `the newest is ${newest.generation.generation}`, doubts)
  } catch (error) {
    if (whyGenerationRefused(error) === null) throw error
    return made('the newest is refused', [messageOf(error)])
  }
}

/** Who leads by the object that is stored; it is only read. */
async function leaseCheck(store: ObjectStore): Promise<ProbeCheck> {
  return { name: 'lease', found: leaseWords(await fetchLease(store)), state: 'ok', needed: 'lease' }
}

function leaseWords({ lease, writtenAt }: StoredLease): string {
  if (lease === null) return 'free'
  const end = endOf(lease, writtenAt)
  const named = `epoch ${lease.epoch}, ${lease.name}, ${toIso(end)}`
  if (lease.released) return `free (last: ${named})`
  return end > Date.now() ? `taken (${named})` : `free by the clock here (last: ${named})`
}

function describe(checks: readonly ProbeCheck[]): string {
  const rows = checks.map(({ name, found, state }) => [name, found, state])
  return table(['check', 'found', 'result'], rows)
}

function facts(
  { url }: ObjectStore,
  { role, soleWriter, endpoint }: Config['fleet'],
  { checks, store, lease }: ProbeReport,
  usable: boolean,
): object {
  return { url, endpoint, role: reportedRole(role), soleWriter, usable, store, lease, checks }
}

function refusalOf({ role, soleWriter }: Config['fleet'], report: ProbeReport): string | null {
  const namesOf = (which: ProbeCheck['state']): string[] =>
    report.checks.filter(({ state }) => state === which).map(({ name }) => name)
  const failed = namesOf('failed')
  const silent = namesOf('unknown')
  if (failed.length === 0 && silent.length > 0)
    return `the store did not answer during the check (${silent.join(', ')}), so nothing is known of it: run this command again.`
  if (!report.store) return `this store cannot keep a fleet: ${failed.join(', ')}. Use another one.`
  if (report.lease || role === 'reader') return null
  return soleWriter
    ? `no lease is taken from this store (${failed.join(', ')}): fleet.role: sole-writer promises that there is one writer.`
    : `this store cannot decide which mirror leads: ${failed.join(', ')}. Use another one, or set ` +
        'fleet.role: sole-writer on one mirror, fleet.role: reader on all others.'
}
