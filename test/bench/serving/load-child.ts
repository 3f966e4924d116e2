import { connect } from 'node:net'

/** What to ask for: `ids` over keep-alive connections, one request at a time on each. */
export interface Load {
  port: number
  ids: readonly string[]
  gzip: boolean
  connections: number
  /** How long they are asked for, in random order; null: each once, in the order of the list. */
  seconds: number | null
}

/** Answers counted, and how many were not a 200. */
export interface LoadResult {
  answers: number
  failures: number
  seconds: number
  bytes: number
}

process.on('disconnect', () => process.exit(0))
process.on('message', (load: Load) => {
  void run(load).then((result) => process.send?.(result), fail)
})
process.send?.('ready')

function fail(error: unknown): void {
  process.stderr.write(`load: ${String(error)}\n`)
  process.exit(1)
}

async function run({ port, ids, gzip, connections, seconds }: Load): Promise<LoadResult> {
  const coding = gzip ? 'Accept-Encoding: gzip, deflate\r\n' : ''
  const rest = `.json HTTP/1.1\r\nHost: mirror\r\nUser-Agent: bench\r\nAccept: */*\r\n${coding}Connection: keep-alive\r\n\r\n`
  const requests = ids.map((id) => Buffer.from(`GET /external/osv/${encodeURIComponent(id)}${rest}`))
  const load = async (nextFrom: (started: number) => Next): Promise<LoadResult> => {
    const result: LoadResult = { answers: 0, failures: 0, seconds: 0, bytes: 0 }
    const started = performance.now()
    const next = nextFrom(started)
    await Promise.all(Array.from({ length: connections }, () => ask(port, next, result)))
    result.seconds = (performance.now() - started) / 1000
    return result
  }
  if (seconds === null) return load(() => inOrder(requests))
  await load((started) => atRandom(requests, started + WARM_MS)) // until this process is no longer slow
  return load((started) => atRandom(requests, started + seconds * 1000))
}

/** What is not measured of a load, milliseconds: a new process compiles its code first. */
const WARM_MS = 500

/** Returns the next request; undefined: the load ends. */
type Next = () => Buffer | undefined

function inOrder(requests: readonly Buffer[]): Next {
  let at = 0
  return () => requests[at++]
}

function atRandom(requests: readonly Buffer[], until: number): Next {
  return () => (performance.now() >= until ? undefined : requests[Math.floor(Math.random() * requests.length)])
}

/** One connection: the next request goes out when the last answer is in. */
function ask(port: number, nextOf: Next, result: LoadResult): Promise<void> {
  return new Promise((resolve, reject) => {
    let missing = 0
    const finish = (): void => {
      resolve()
      socket.destroy()
    }
    const next = (): void => {
      const request = nextOf()
      if (request === undefined) finish()
      else socket.write(request)
    }
    const take = (length: number, bytes: Buffer): boolean => {
      result.bytes += length
      missing = missing > 0 ? missing - length : bodyMissing(bytes, length, result)
      if (missing === 0) {
        result.answers++
        next()
      }
      return true
    }
    const buffer = Buffer.alloc(262_144)
    const onread = { buffer, callback: (length: number) => take(length, buffer) }
    const socket = connect({ port, host: '127.0.0.1', onread })
    socket.setNoDelay(true)
    socket.once('connect', next).once('error', reject)
    socket.once('close', () => reject(new Error('the server closed a connection')))
  })
}

/** Reads an answer's head, which all these servers send in one piece; returns how much of the body is still to come. */
function bodyMissing(bytes: Buffer, length: number, result: LoadResult): number {
  const head = bytes.toString('latin1', 0, Math.min(length, 1024))
  const end = head.indexOf('\r\n\r\n')
  const declared = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (end < 0 || declared === undefined) throw new Error(`no sound answer: ${head.slice(0, 200)}`)
  if (!head.startsWith('HTTP/1.1 200')) result.failures++
  return end + 4 + Number(declared) - length
}
