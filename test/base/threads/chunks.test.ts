import { describe, expect, test } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { TRANSFER_BYTES, consumeChunks, startChunks } from '../../../src/base/threads/chunks.ts'

const CHUNKS = new URL('../../../src/base/threads/chunks.ts', import.meta.url).href
const ERRORS = new URL('../../../src/base/errors.ts', import.meta.url).href

/** The entry of a worker that runs these statements, with `send`, a first `chunk`, the shared cell `sent` and its `task`. */
const producing = (statements: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { TRANSFER_BYTES, produceChunks } from ${JSON.stringify(CHUNKS)}
      import { MirrorError } from ${JSON.stringify(ERRORS)}
      produceChunks(async (sent, send, task) => {
        let chunk = new Uint8Array(TRANSFER_BYTES)
        ${statements}
      })`)}`,
  )

async function consumed(
  statements: string,
  use: (chunk: Uint8Array, ahead: number) => void = () => undefined,
): Promise<void> {
  const sent = new Int32Array(new SharedArrayBuffer(4))
  let used = 0
  await consumeChunks({ file: producing(statements), data: sent }, (chunk) => {
    use(chunk, Atomics.load(sent, 0) - ++used)
  })
}

describe('chunks of another thread', () => {
  test('arrive in order, and at most four exist', async () => {
    const seen: number[] = []
    const aheads: number[] = []
    await consumed(
      `for (let i = 0; i < 40; i++) {
        chunk[0] = i
        Atomics.add(sent, 0, 1)
        chunk = await send(chunk.subarray(0, 1 + i))
        if (chunk.length !== TRANSFER_BYTES) throw new Error('not a whole chunk')
      }`,
      (chunk, ahead) => {
        seen.push(chunk[0] ?? -1)
        expect(chunk.length).toBe(seen.length)
        aheads.push(ahead)
      },
    )
    expect(seen).toEqual([...Array(40).keys()])
    expect(Math.max(...aheads)).toBeLessThanOrEqual(4)
  })

  test('that are larger than usual are alone', async () => {
    const aheads: number[] = []
    await consumed(
      `for (let i = 0; i < 6; i++) {
        Atomics.add(sent, 0, 1)
        chunk = await send(new Uint8Array(TRANSFER_BYTES + 1))
      }`,
      (chunk, ahead) => {
        expect(chunk.length).toBe(TRANSFER_BYTES + 1)
        aheads.push(ahead)
      },
    )
    // The counter says that the next one is about to be sent, at most.
    expect(Math.max(...aheads)).toBeLessThanOrEqual(1)
  })

  test('end with the error of the thread, its code included', async () => {
    const failed = consumed(`throw new MirrorError('archive', 'it is damaged')`)
    await expect(failed).rejects.toEqual(new MirrorError('archive', 'it is damaged'))
    const system = consumed(`throw Object.assign(new Error('no space'), { code: 'ENOSPC' })`)
    await expect(system).rejects.toMatchObject({ message: 'no space', code: 'ENOSPC' })
  })

  test('end when the thread ends before its work did', async () => {
    await expect(consumed('process.exit(0)')).rejects.toThrow('ended before its work did')
    await expect(
      consumed('setImmediate(() => { throw new Error("lost") }); await 0; await new Promise(() => {})'),
    ).rejects.toThrow('lost')
  })

  test('end with the error of the one that uses them, although more are sent', async () => {
    const endless = 'for (;;) chunk = await send(chunk)'
    const failed = consumed(endless, () => {
      throw new Error('enough')
    })
    await expect(failed).rejects.toThrow('enough')
    expect(TRANSFER_BYTES).toBe(1 << 18)
  })

  test('begin with a task that is sent after the start', async () => {
    const thread = startChunks({
      file: producing('chunk[0] = (await task).first; await send(chunk.subarray(0, 1))'),
      data: null,
    })
    const seen: number[] = []
    await thread.consume({ first: 7 }, (chunk) => seen.push(chunk[0] ?? -1))
    expect(seen).toEqual([7])
  })

  test('that are never asked for do not keep their thread', async () => {
    const sent = new Int32Array(new SharedArrayBuffer(4))
    const file = producing('Atomics.notify(sent, 0, Atomics.add(sent, 0, 1) + 1); await task')
    const thread = startChunks({ file, data: sent })
    const started = Atomics.waitAsync(sent, 0, 0)
    if (started.async) await started.value
    await thread.stop()
    await thread.stop()
    await expect(thread.consume(null, () => undefined)).rejects.toThrow('ended before its work did')
  })

  test('of a thread that failed before its task reject with its error', async () => {
    const file = producing(`throw new MirrorError('archive', 'it is damaged')`)
    const thread = startChunks({ file, data: null })
    await expect(thread.consume(null, () => undefined)).rejects.toThrow('it is damaged')
  })
})
