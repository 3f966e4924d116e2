import { Agent, request } from 'undici'

/** What a bare client is to do: these GETs, in this order, so many at a time. */
export interface Replay {
  requests: readonly { url: string; headers: Record<string, string> }[]
  concurrency: number
}

/** How it went. */
export interface Replayed {
  ms: number
  bytes: number
  failures: number
}

process.on('disconnect', () => process.exit(0))
process.on('message', (replay: Replay) => {
  void run(replay).then((result) => process.send?.(result), fail)
})
process.send?.('ready')

function fail(error: unknown): void {
  process.stderr.write(`replay: ${String(error)}\n`)
  process.exit(1)
}

/** Reads every body to its end and does nothing with it: what is left is what the service itself takes. */
async function run({ requests, concurrency }: Replay): Promise<Replayed> {
  const dispatcher = new Agent({ connections: concurrency, pipelining: 1 })
  const result: Replayed = { ms: 0, bytes: 0, failures: 0 }
  const started = performance.now()
  let next = 0
  const worker = async (): Promise<void> => {
    for (let due = requests[next++]; due !== undefined; due = requests[next++]) {
      const { statusCode, body } = await request(due.url, { dispatcher, headers: due.headers })
      for await (const chunk of body) result.bytes += (chunk as Buffer).length
      if (statusCode >= 400 && statusCode !== 404) result.failures++
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  result.ms = performance.now() - started
  await dispatcher.close()
  return result
}
