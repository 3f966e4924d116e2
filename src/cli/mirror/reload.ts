import { setTimeout as delay } from 'node:timers/promises'
import { MirrorError, systemCode } from '../../base/errors.ts'
import { type DaemonSettings, type Reload, daemonSettings } from '../../store/database/daemon-settings.ts'
import { servingProcess } from '../../store/database/lock.ts'
import { type GlobalOptions, print, printJson, settings } from '../context.ts'

/** How long the daemon may take to read its settings, and how often its result is looked for, milliseconds. */
const WAIT_MS = 10_000
const LOOK_MS = 50

/**
 * `patchmirror config --reload`: has the daemon of this data folder read its settings and files again, and says what is in force and what
 * requires a restart; exits with 3 when the daemon does not say it. Settings that cannot be used are refused here already, before the daemon is signalled.
 */
export async function reloadCommand(options: GlobalOptions & { json?: boolean }): Promise<number> {
  const { config } = settings(options, false)
  const { dir } = config.data
  const pid = servingProcess(dir)
  if (pid === null)
    throw new MirrorError(
      'usage',
      `no daemon serves ${dir} (data.dir): start it ("patchmirror serve"), or name the settings of the daemon with --config FILE`,
    )
  const before = daemonSettings(dir)
  signal(pid, dir)
  const found = before === null ? null : await foundAfter(before, dir)
  if (found !== null && found.problem !== null)
    throw new MirrorError(
      'config',
      `process ${pid} cannot use the settings that it finds, so those in force stay, all of them: ${found.problem}`,
    )
  const next = nextStep(found)
  const { inForce = null, restart = null } = found ?? {}
  if (options.json === true) printJson({ signalled: pid, inForce, restart, next })
  else
    print(
      found === null
        ? `process ${pid} was asked to, and did not say that it read its settings: ${next}`
        : shown(pid, found),
    )
  return found === null ? 3 : 0
}

function signal(pid: number, dir: string): void {
  try {
    process.kill(pid, 'SIGHUP')
  } catch (error) {
    const why =
      systemCode(error) === 'EPERM'
        ? 'this user may not signal it: run the command as the user of the daemon'
        : 'it is not a process of this machine or container: run the command where the daemon runs'
    throw new MirrorError('usage', `process ${pid} serves ${dir}, but ${why}`, { cause: error })
  }
}

/** What the daemon found when it read its settings after this state; null when it did not say so in time. */
async function foundAfter(before: DaemonSettings, dir: string): Promise<Reload | null> {
  for (const end = performance.now() + WAIT_MS; performance.now() < end; await delay(LOOK_MS)) {
    const now = daemonSettings(dir)
    if (now === null || now.instance !== before.instance) return null
    if (now.reloads > before.reloads) return now.last
  }
  return null
}

function nextStep(found: Reload | null): string {
  if (found === null) return 'its log names what is in force and what needs a restart'
  return found.restart.length === 0 ? 'nothing else is to be done' : 'restart the daemon'
}

function shown(pid: number, found: Reload): string {
  const { inForce, restart } = found
  const now = inForce.length === 0 ? 'no live setting changed' : `in force now: ${inForce.join(', ')}`
  const rest =
    restart.length === 0
      ? 'no setting waits for a restart'
      : `changed, and in force only after a restart: ${restart.join(', ')}; ${nextStep(found)}`
  return `process ${pid} has read its settings and files again\n${now}\n${rest}`
}
