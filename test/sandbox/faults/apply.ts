import { altered, replacement } from './corrupt-body.ts'
import { type Outlet, deliver, sendHead, write } from '../deliver.ts'
import type { Fault } from './fault.ts'
import type { NegotiatedAnswer, Policy } from '../http/negotiate.ts'
import { slice } from '../feed/representation.ts'

/**
 * Sends an answer with a fault applied. `answerWith` negotiates the (distorted) resource again under a
 * policy, so faults that ignore a Range can request the whole.
 */
export async function deliverFaulty(
  outlet: Outlet,
  fault: Fault,
  answerWith: (policy: Policy) => NegotiatedAnswer | Promise<NegotiatedAnswer>,
  policy: Policy,
): Promise<void> {
  const replaced = replacement(fault)
  if (replaced !== undefined) return deliver(outlet, replaced)
  const whole = fault.kind === 'ignoreRange'
  const plain = fault.kind === 'unframed' ? { ...policy, gzip: 'never' as const } : policy // gzip shows its end
  const answer = await answerWith(whole ? { ...policy, ranges: false } : plain)
  if (fault.kind === 'stall') return stall(outlet, answer, fault)
  if (fault.kind === 'slow') return trickle(outlet, answer, fault.bytesPerSecond)
  if (fault.kind === 'reset') return cut(outlet, answer, fault.bytes, 'reset')
  if (fault.kind === 'truncate') {
    return cut(outlet, answer, fault.bytes ?? Math.floor(answer.length / 2), 'end')
  }
  if (fault.kind === 'wrongLength') return wrongLength(outlet, answer, fault.by)
  if (fault.kind === 'unframed') return unframed(outlet, answer, fault.bytes ?? answer.length)
  await deliver(outlet, altered(fault, answer))
}

async function stall(outlet: Outlet, answer: NegotiatedAnswer, fault: Fault & { kind: 'stall' }): Promise<void> {
  if (fault.at !== 'body') {
    await pause(outlet, fault.ms, fault.until)
    return outlet.response.destroyed ? undefined : deliver(outlet, answer)
  }
  const before = outlet.head ? 0 : Math.min(fault.bytes ?? 0, answer.length)
  sendHead(outlet, answer)
  outlet.response.flushHeaders()
  await writePart(outlet, answer, 0, before)
  await pause(outlet, fault.ms, fault.until)
  await writePart(outlet, answer, before, answer.length)
  outlet.response.end()
}

/** Ten pieces a second, at least a byte each. */
async function trickle(outlet: Outlet, answer: NegotiatedAnswer, bytesPerSecond: number): Promise<void> {
  if (outlet.head) return deliver(outlet, answer)
  const step = Math.max(1, Math.floor(bytesPerSecond / 10))
  const every = (1000 * step) / bytesPerSecond
  sendHead(outlet, answer)
  outlet.response.flushHeaders()
  for (let at = 0; at < answer.length && !outlet.response.destroyed; at += step) {
    await pause(outlet, every)
    await writePart(outlet, answer, at, Math.min(at + step, answer.length))
  }
  outlet.response.end()
}

/** Sends `bytes` of the body (no header when undefined) and ends the connection, with RST or FIN. */
async function cut(
  outlet: Outlet,
  answer: NegotiatedAnswer,
  bytes: number | undefined,
  how: 'reset' | 'end',
): Promise<void> {
  const { response } = outlet
  if (bytes !== undefined) {
    sendHead(outlet, answer)
    response.flushHeaders()
    await writePart(outlet, answer, 0, bytes)
    await flushed(outlet)
  }
  if (how === 'reset') response.socket?.resetAndDestroy()
  else response.socket?.destroySoon()
}

async function wrongLength(outlet: Outlet, answer: NegotiatedAnswer, by: number): Promise<void> {
  const claimed = Math.max(0, answer.length + by)
  sendHead(outlet, { ...answer, headers: { ...answer.headers, 'Content-Length': claimed } })
  outlet.response.flushHeaders()
  await writePart(outlet, answer, 0, answer.length)
  await flushed(outlet)
  outlet.response.socket?.destroySoon()
}

async function unframed({ response, head, logged }: Outlet, answer: NegotiatedAnswer, bytes: number): Promise<void> {
  response.useChunkedEncodingByDefault = false
  response.shouldKeepAlive = false
  logged.status = answer.status
  response.writeHead(answer.status, answer.headers)
  await writePart({ response, head, logged }, answer, 0, bytes)
  response.end()
}

async function writePart(outlet: Outlet, answer: NegotiatedAnswer, start: number, end: number): Promise<void> {
  if (outlet.head) return
  for (const piece of slice([...answer.body()], start, end)) await write(outlet, piece)
}

/** Until what was written has left the process. */
function flushed({ response }: Outlet): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed || response.socket === null) return resolve()
    response.once('close', resolve)
    response.socket.write('', () => resolve())
  })
}

/** Waits until `ms` have passed (for ever when undefined), `until` aborts or the client is gone. */
function pause({ response }: Outlet, ms: number | undefined, until?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = ms === undefined ? undefined : setTimeout(done, ms)
    function done(): void {
      clearTimeout(timer)
      response.off('close', done)
      until?.removeEventListener('abort', done)
      resolve()
    }
    until?.addEventListener('abort', done)
    if (response.destroyed || until?.aborted === true) done()
    else response.on('close', done)
  })
}
