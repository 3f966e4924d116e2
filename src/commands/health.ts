import { messageOf } from '../errors.ts'
import { type GlobalOptions, print, settings } from './setup.ts'

/** `patchmirror health [--ready]`: asks the daemon of these settings; 0 when it says yes. For container health checks. */
export async function healthCommand(options: GlobalOptions & { ready?: boolean }): Promise<number> {
  const { config } = settings(options, false)
  const path = options.ready === true ? '/-/ready' : '/-/health'
  try {
    const answer = await fetch(daemonUrl(config.server) + path, {
      signal: AbortSignal.timeout(5_000),
    })
    print(await answer.text())
    return answer.ok ? 0 : 1
  } catch (error) {
    print(`no daemon answers: ${messageOf(error)}`)
    return 1
  }
}

/** Where a daemon with these settings is reached from its own machine. */
export function daemonUrl({ host, port }: { host: string; port: number }): string {
  const wildcard: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }
  const name = wildcard[host] ?? (host.includes(':') ? `[${host}]` : host)
  return `http://${name}:${port}`
}
