import { INSTANCE_HEADER } from '../api/http/paths.ts'
import type { Config } from '../config/schema.ts'
import { createTransport } from '../upstream/http/transport.ts'

/** What the daemon answered. */
interface DaemonAnswer {
  readonly status: number
  readonly text: string
  /** The id of the daemon that answered, on its health page; null: something else answered, or another page. */
  readonly instance: string | null
}

/** Where a daemon with these settings is reached from its own machine. */
export function daemonUrl({ host, port }: { host: string; port: number }): string {
  const wildcard: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }
  const name = wildcard[host] ?? (host.includes(':') ? `[${host}]` : host)
  return `http://${name}:${port}`
}

/** Asks the daemon of these settings for one of its pages; never through a proxy. Rejects with what the network does. */
export async function askDaemon(
  { server, upstream }: Pick<Config, 'server' | 'upstream'>,
  path: string,
  timeoutMs: number,
): Promise<DaemonAnswer> {
  const transport = createTransport({ ...upstream, caFile: null }, { direct: true })
  try {
    const request = { method: 'GET' as const, headers: {}, body: null }
    const url = new URL(daemonUrl(server) + path)
    const answer = await transport.send({ ...request, url }, AbortSignal.timeout(timeoutMs))
    const chunks: Buffer[] = []
    for await (const chunk of answer.body) chunks.push(chunk)
    const instance = answer.headers[INSTANCE_HEADER.toLowerCase()]
    return {
      status: answer.status,
      text: Buffer.concat(chunks).toString(),
      instance: typeof instance === 'string' ? instance : null,
    }
  } finally {
    await transport.close()
  }
}
