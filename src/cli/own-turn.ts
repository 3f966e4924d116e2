import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../base/errors.ts'
import { lockHolder, servingProcess } from '../store/database/lock.ts'
import type { Writes } from '../store/writes.ts'
import { statusOfOwnDaemon } from './daemon-client.ts'

/** What a run of a command waits with. */
interface TurnWait {
  readonly config: Config
  readonly store: Pick<Writes, 'snapshots'>
  /** Ends a wait. */
  readonly signal: AbortSignal
  /** Called once with what is waited for. */
  readonly say: (text: string) => void
}

/** Pause between two looks, milliseconds. */
const PAUSE_MS = 250
/** The least time to wait until a fleet serves what is stored, seconds: a generation is activated two polls after its publication. */
const LEAST_SECONDS = 60

/**
 * Runs `work` when it is its turn, as a run of the daemon of this data folder: not while the daemon is in a run, and where the
 * daemon leads a fleet, not before the fleet serves what is stored. Otherwise runs that follow each other closely would hold the
 * leader at its old generation. `publishes`: whether the work may store a snapshot.
 */
export async function inTurn<T>(wait: TurnWait, publishes: boolean, work: () => Promise<T>): Promise<T> {
  const once = onlyOnce(wait)
  for (;;) {
    if (publishes) await untilActive(once)
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof MirrorError && error.code === 'locked')) throw error
      if (!isDaemonRunning(wait.config.data.dir)) throw error
      await untilRunEnded(once)
    }
  }
}

/** Says each text once. */
function onlyOnce(wait: TurnWait): TurnWait {
  const said = new Set<string>()
  return {
    ...wait,
    say(text) {
      if (!said.has(text)) wait.say(text)
      said.add(text)
    },
  }
}

/** Reports whether it is the daemon of a data folder that writes to it now. */
function isDaemonRunning(dataDir: string): boolean {
  const daemon = servingProcess(dataDir)
  return daemon !== null && lockHolder(dataDir, 'sync') === `process ${daemon}`
}

async function untilRunEnded({ config, signal, say }: TurnWait): Promise<void> {
  say('the daemon of this data folder is in a run: this command waits until it has ended')
  while (isDaemonRunning(config.data.dir)) await pause(signal)
}

async function untilActive(wait: TurnWait): Promise<void> {
  const { config, signal, say } = wait
  const { url, maxLagSeconds, pollSeconds } = config.fleet
  if (url === null) return
  const seconds = Math.max(LEAST_SECONDS, maxLagSeconds) + 2 * pollSeconds
  const end = performance.now() + seconds * 1000
  while (await isHeldBack(wait)) {
    say(
      'the daemon of this data folder leads the fleet, and the fleet does not serve yet what is stored here: this command waits ' +
        'for the activation, as the runs of the daemon do',
    )
    if (performance.now() > end)
      throw new MirrorError(
        'locked',
        `the fleet did not serve what is stored here within ${seconds} s, so nothing was run: see "patchmirror status" and the ` +
          'log of the daemon, then run the command again',
      )
    await pause(signal)
  }
}

/** Reports whether the daemon of this data folder leads its fleet, and does not serve the newest snapshots yet. */
async function isHeldBack({ config, store }: TurnWait): Promise<boolean> {
  const status = await statusOfOwnDaemon(config)
  if (status?.fleet?.leads !== true) return false
  if (status.fleet.holdingBackSince !== null) return true
  // The daemon looks for commits of others each second.
  return status.sources.some(({ name, served }) => served !== null && served !== store.snapshots.readSnapshot(name)?.id)
}

async function pause(signal: AbortSignal): Promise<void> {
  try {
    await sleep(PAUSE_MS, undefined, { signal })
  } catch (cause) {
    throw new MirrorError('aborted', 'the command was stopped while it waited', { cause })
  }
}
