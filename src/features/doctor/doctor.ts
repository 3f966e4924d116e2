import { subscriptions, webhook } from './account.ts'
import { boxes, keys, views } from './carried.ts'
import { type CheckResult, type DoctorCheck, runChecks } from './check.ts'
import { fleetStore, member } from './fleet.ts'
import { lock, schema, soundness } from './database.ts'
import { fileSystem, rights, space } from './data-folder.ts'
import { networkChecks } from './network/checks.ts'
import { clock, credential, openProbe, rate, service } from './network/service.ts'
import { nodeVersion, settings, settingsInUse } from './program.ts'
import { deadLetters, edge, endpoint, relay } from './receivers.ts'
import { damage, dates, sources } from './sources.ts'
import type { DoctorWorld, Examined } from './world.ts'

/**
 * Examines the whole mirror, with or without a running daemon: reads alone, but for a small file that is written into the
 * data folder and removed. Each check is bounded by `timeoutMs`. Never rejects.
 */
export async function examineMirror(world: DoctorWorld): Promise<CheckResult[]> {
  const { loaded, timeoutMs } = world
  const program: DoctorCheck[] = [
    checkOf('settings', 'settings and the files that they name', [], () => settings(world)),
    checkOf('node', 'version of Node.js', [], () => nodeVersion(world)),
  ]
  if (loaded === null) return runChecks(program, timeoutMs)
  const { config } = loaded
  const probe = openProbe(world, config)
  try {
    return await runChecks([...program, ...mirrorChecks({ world, config, probe })], timeoutMs)
  } finally {
    await probe.upstream.close()
  }
}

const DATA = ['database', 'schema']
const ON_THE_WAY = ['settings', 'proxy', 'dns', 'tcp', 'tls']
const SERVICE = [...ON_THE_WAY, 'service']

/** Returns the checks of a mirror whose settings can be read, in their order. */
export function mirrorChecks(examined: Examined): DoctorCheck[] {
  const { world, config } = examined
  const check = (name: string, title: string, needs: readonly string[], look: Look): DoctorCheck =>
    checkOf(name, title, needs, () => look(examined))
  return [
    check('folder', 'data folder and its rights', [], rights),
    check('file-system', 'file system of the data folder', ['folder'], fileSystem),
    check('disk', 'free space', ['folder'], space),
    check('database', 'quick check of the databases', ['folder'], soundness),
    check('schema', 'schema of the databases', ['database'], schema),
    check('lock', 'who uses the data folder', ['folder'], lock),
    check('settings-in-use', 'settings of the running daemon', ['settings', 'folder'], settingsInUse),
    ...networkChecks(world, config),
    check('service', 'answer of the service', ON_THE_WAY, service),
    check('clock', "clock against upstream's Date", SERVICE, clock),
    check('credential', 'credential and what it may read', SERVICE, credential),
    check('rate', 'rate limit of the service', SERVICE, rate),
    check('endpoint', 'webhook endpoint', ['settings', 'lock'], endpoint),
    check('relay', 'targets of the relay', ['settings', ...DATA], relay),
    check('dead-letters', 'events that were given up', ['settings', ...DATA], deadLetters),
    check('edge', 'caches in front of this mirror', ['settings', ...DATA], edge),
    check('subscriptions', 'subscriptions that are understood', DATA, subscriptions),
    check('webhook', 'webhook subscription of this mirror', [...SERVICE, 'credential', 'endpoint', ...DATA], webhook),
    check('sources', 'last run and age of each source', [...SERVICE, 'credential', ...DATA], sources),
    check('dates', 'dates of the newest snapshots', ['clock', ...DATA], dates),
    check('damage', 'damage that the last verification found', ['disk', ...DATA], damage),
    check('boxes', 'inbox and outbox of bundles', ['settings', ...DATA], boxes),
    check('keys', 'keys and certificates', ['settings', ...DATA], keys),
    check('views', 'views for scanners', ['folder', ...DATA], views),
    check('fleet-store', 'object store of the fleet', ['settings'], fleetStore),
    check('fleet', 'this mirror in the fleet', ['settings', ...DATA], member),
  ]
}

type Look = (examined: Examined) => ReturnType<DoctorCheck['run']>

function checkOf(name: string, title: string, needs: readonly string[], run: DoctorCheck['run']): DoctorCheck {
  return { name, title, needs, run }
}
