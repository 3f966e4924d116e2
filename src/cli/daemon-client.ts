import { INSTANCE_HEADER } from '../server/http/paths.ts'
import type { Status } from '../base/reports/status.ts'
import type { Config } from '../config/schema.ts'
import { servingDaemon } from '../store/database/lock.ts'
import { createTransport } from '../upstream/http/transport.ts'

/** What the daemon answered. */
export interface DaemonAnswer {
  readonly status: number
  readonly text: string
  /** The id of the daemon that answered, on its health page; null: something else answered, or another page. */
  readonly instance: string | null
  /** The methods of the path, as the answer names them; null: it names none. */
  readonly allow: string | null
}

/** Of the settings, where the daemon listens. */
type Listening = Pick<Config['server'], 'host' | 'port' | 'socket' | 'certFile' | 'keyFile'>

/** Returns where a daemon with these settings is reached from its own machine, as text to show: `unix:` and a path for a socket. */
export function daemonUrl(server: Listening): string {
  return server.socket === null ? baseOf(server) : `unix:${server.socket}`
}

/** Returns what the URL of a request begins with; with a socket the name in it means nothing. */
function baseOf({ host, port, socket, certFile, keyFile }: Listening): string {
  if (socket !== null) return 'http://localhost'
  const wildcard: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }
  const name = wildcard[host] ?? (host.includes(':') ? `[${host}]` : host)
  // The key may be closed to the user who runs this command: its setting is then read as not set.
  const scheme = certFile === null && keyFile === null ? 'http' : 'https'
  return `${scheme}://${name}:${port}`
}

/**
 * Returns the settings with the port that the daemon of this data folder took, where they leave it open (port 0 in `server.listen`). Throws
 * `storage`.
 */
export function withTakenPort(config: Config): Config {
  const { data, server } = config
  if (server.port !== 0 || server.socket !== null) return config
  return { ...config, server: { ...server, port: servingDaemon(data.dir)?.port ?? 0 } }
}

/** Asks the daemon of these settings for one of its pages; never through a proxy. Rejects with what the network does. */
export async function askDaemon(
  { server, upstream }: Pick<Config, 'server' | 'upstream'>,
  path: string,
  timeoutMs: number,
  method: 'GET' | 'OPTIONS' = 'GET',
): Promise<DaemonAnswer> {
  const own = { socket: server.socket }
  const transport = createTransport({ ...upstream, caFile: null }, { direct: true, own })
  try {
    const request = { method, headers: {}, body: null }
    const url = new URL(baseOf(server) + path)
    const answer = await transport.send({ ...request, url }, AbortSignal.timeout(timeoutMs))
    const chunks: Buffer[] = []
    for await (const chunk of answer.body) chunks.push(chunk)
    const { [INSTANCE_HEADER.toLowerCase()]: instance, allow } = answer.headers
    return {
      status: answer.status,
      text: Buffer.concat(chunks).toString(),
      instance: typeof instance === 'string' ? instance : null,
      allow: typeof allow === 'string' ? allow : null,
    }
  } finally {
    await transport.close()
  }
}

/** Returns the report of the daemon that answers; null when nothing answers, or something that is not this program. */
export async function statusOfDaemon(config: Config): Promise<Status | null> {
  try {
    const { status, text } = await askDaemon(withTakenPort(config), '/-/status', 2_000)
    const value: unknown = status === 200 ? JSON.parse(text) : null
    const ours = typeof value === 'object' && value !== null && 'version' in value && 'sources' in value
    return ours ? (value as Status) : null
  } catch {
    return null
  }
}

/** Returns the report of the daemon of this data folder; null when none runs, or it starts or ends. */
export async function statusOfOwnDaemon(config: Config): Promise<Status | null> {
  const daemon = servingDaemon(config.data.dir)
  if (daemon === null || (daemon.port === 0 && config.server.socket === null)) return null
  const status = await statusOfDaemon({ ...config, server: { ...config.server, port: daemon.port } })
  return status?.instance === daemon.instance ? status : null
}
