import { Agent, type IncomingMessage, request } from 'node:http'

/** Connections that the requests of a process share. */
const agent = new Agent({ keepAlive: true })

/**
 * Asks a server of this process for a URL. Costs a third of what `fetch` costs: no redirect is followed, and no encoding is
 * accepted.
 */
export async function getUrl(url: string, headers: Record<string, string> = {}): Promise<Response> {
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { agent, headers }, resolve).once('error', reject).end()
  })
  const chunks: Buffer[] = []
  for await (const chunk of reply) chunks.push(chunk as Buffer)
  const { statusCode: status = 0 } = reply
  const body = status === 204 || status === 304 ? null : Buffer.concat(chunks)
  const pairs = Object.entries(reply.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  )
  return Object.defineProperty(new Response(body, { status, headers: pairs }), 'url', {
    value: url,
  })
}
