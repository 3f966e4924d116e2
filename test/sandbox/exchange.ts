import { type IncomingHttpHeaders, request } from 'node:http'

/** The received bytes up to the end of the answer, and the error code that ended it, if any. */
export interface Exchange {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  error: string | undefined
}

/** One request on a connection of its own; never rejects. Gives up after `giveUpMs`, error `GAVE_UP`. */
export function exchange(
  url: string,
  headers: Record<string, string> = {},
  { method = 'GET', giveUpMs = 5000 }: { method?: string; giveUpMs?: number } = {},
): Promise<Exchange> {
  return new Promise((resolve) => {
    const seen: Exchange = { status: 0, headers: {}, body: Buffer.alloc(0), error: undefined }
    const end = (error?: string): void => {
      clearTimeout(timer)
      outgoing.destroy()
      resolve({ ...seen, error })
    }
    const outgoing = request(url, { method, headers, agent: false }, (incoming) => {
      seen.status = incoming.statusCode ?? 0
      seen.headers = incoming.headers
      incoming.on('data', (part: Buffer) => (seen.body = Buffer.concat([seen.body, part])))
      incoming.on('end', () => end())
      incoming.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
    outgoing.end()
    const timer = setTimeout(() => end('GAVE_UP'), giveUpMs)
  })
}
