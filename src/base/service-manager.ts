import { execFile } from 'node:child_process'
import { messageOf } from './errors.ts'

interface ManagerOptions {
  readonly env: NodeJS.ProcessEnv
  readonly pid: number
  readonly warn: (text: string) => void
}

/** Sends longer than this are ended, milliseconds: systemd-notify waits until the manager has read the message. */
const SEND_MS = 10_000

/**
 * Returns the service manager of this process (sd_notify(3)). Without NOTIFY_SOCKET nothing is ever sent. Messages are sent
 * by the command `systemd-notify`, because Node has no datagram sockets in the file system; the unit therefore needs
 * `NotifyAccess=all`.
 */
export function serviceManager({ env, pid, warn }: ManagerOptions) {
  const isOn = (env['NOTIFY_SOCKET'] ?? '') !== ''
  let last = Promise.resolve()
  let complaint = ''
  let timer: NodeJS.Timeout | undefined
  const send = (...fields: string[]): void => {
    if (!isOn) return
    last = last.then(async () => {
      const fault = await notify(fields, env)
      if (fault !== null && fault !== complaint)
        warn(`the service manager cannot be notified: systemd-notify: ${fault}`)
      complaint = fault ?? ''
    })
  }
  return {
    /** The daemon listens, or has finished to reload. */
    ready: (status: string): void => send('READY=1', `STATUS=${status}`),
    /** The settings are being read again; `ready` follows. */
    reloading: (): void => send('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`),
    /** The daemon is ending. */
    stopping: (): void => send('STOPPING=1', 'STATUS=stopping'),
    /** Reports at half of the watchdog's time that the daemon works, as long as `answers` resolves with true. */
    watch(answers: () => Promise<boolean>): void {
      const interval = isOn ? watchdogMs(env, pid) : null
      if (interval === null) return
      let asking = false
      const look = async (): Promise<void> => {
        if (asking) return // the last question has no answer yet: the watchdog gets nothing
        asking = true
        if (await answers().catch(() => false)) send('WATCHDOG=1')
        asking = false
      }
      timer = setInterval(() => void look(), interval / 2).unref()
    },
    /** Resolves when all messages are sent; nothing is sent for the watchdog from then on. */
    async close(): Promise<void> {
      clearInterval(timer)
      await last
    },
  }
}

/** Returns the watchdog's time for this process, milliseconds; null when there is none. */
function watchdogMs(env: NodeJS.ProcessEnv, pid: number): number | null {
  const { WATCHDOG_USEC: usec = '', WATCHDOG_PID: owner = String(pid) } = env
  return /^[1-9]\d*$/.test(usec) && owner === String(pid) ? Number(usec) / 1000 : null
}

/** Sends one message; resolves with what was wrong, or null. */
function notify(fields: readonly string[], env: NodeJS.ProcessEnv): Promise<string | null> {
  return new Promise((resolve) => {
    const options = { env, timeout: SEND_MS }
    execFile('systemd-notify', [...fields], options, (error, _out, err) => {
      resolve(error === null ? null : err.trim() || messageOf(error))
    })
  })
}
