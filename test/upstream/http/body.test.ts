import { describe, expect, test } from 'vitest'
import { type IncomingBody, createBody } from '../../../src/upstream/http/body.ts'

/** A body, and what it requested of its connection. */
function opened(): IncomingBody & { asked: string[] } {
  const asked: string[] = []
  const incoming = createBody({
    pause: () => asked.push('pause'),
    resume: () => asked.push('resume'),
    abort: () => asked.push('abort'),
  })
  return { ...incoming, asked }
}

async function textOf({ body }: IncomingBody): Promise<string> {
  let text = ''
  for await (const chunk of body) text += chunk.toString()
  return text
}

describe('a body', () => {
  test('is one piece when it has arrived, and none while it arrives', async () => {
    const made = opened()
    made.push(Buffer.from('{"a":'))
    expect(made.body.whole()).toBeNull()
    made.push(Buffer.from('1}'))
    made.end()
    expect(made.body.whole()?.toString()).toBe('{"a":1}')
    expect(await textOf(made)).toBe('')
    const empty = opened()
    empty.end()
    expect(empty.body.whole()).toHaveLength(0)
    expect([...made.asked, ...empty.asked]).toEqual([])
  })

  test('pauses its connection at 64 KiB of unread bytes until they are read', async () => {
    const made = opened()
    made.push(Buffer.alloc(40_000))
    expect(made.asked).toEqual([])
    made.push(Buffer.alloc(40_000))
    expect(made.asked).toEqual(['pause'])
    expect(made.body.read()).toHaveLength(40_000)
    expect(made.asked).toEqual(['pause', 'resume'])
    made.end()
    expect(await textOf(made)).toHaveLength(40_000)
    expect(made.asked).toEqual(['pause', 'resume'])
  })

  test('that breaks off gives the received bytes, then the error', async () => {
    const made = opened()
    made.push(Buffer.from('half'))
    made.fail(new Error('reset'))
    expect(made.body.whole()).toBeNull()
    const seen: string[] = []
    const reading = async (): Promise<void> => {
      for await (const chunk of made.body) seen.push(chunk.toString())
    }
    await expect(reading()).rejects.toThrow('reset')
    expect(seen).toEqual(['half'])
  })

  test('wakes its reader with the error that it is destroyed with, and ends the connection once', async () => {
    const made = opened()
    const reading = textOf(made)
    made.body.destroy(new Error('too slow'))
    made.body.destroy()
    await expect(reading).rejects.toThrow('too slow')
    expect(made.asked).toEqual(['abort'])
  })

  test('ends its connection when the reader leaves early, and not after the end', async () => {
    const made = opened()
    made.push(Buffer.from('first'))
    for await (const chunk of made.body) {
      expect(chunk.toString()).toBe('first')
      break
    }
    expect(made.asked).toEqual(['abort'])
    const ended = opened()
    ended.push(Buffer.from('first'))
    ended.end()
    for await (const chunk of ended.body) if (chunk.length > 0) break
    expect(ended.asked).toEqual([])
  })

  test('is discarded up to 128 KiB; of a longer one the connection is ended', async () => {
    const short = opened()
    short.push(Buffer.alloc(100_000))
    const discarded = short.body.dump()
    expect(short.asked).toEqual(['pause', 'resume'])
    short.end()
    await discarded
    expect(short.body.whole()).toHaveLength(0)
    const long = opened()
    const cut = long.body.dump()
    long.push(Buffer.alloc(100_000))
    expect(long.asked).toEqual([])
    long.push(Buffer.alloc(100_000))
    await cut
    expect(long.asked).toEqual(['abort'])
  })
})
