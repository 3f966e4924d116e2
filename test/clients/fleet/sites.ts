import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type AddressInfo, type Socket, createConnection, createServer } from 'node:net'
import { findTool } from '../../support/tools.ts'

/** A network of its own, which the test reaches at any time. */
export interface Site {
  /** What starts a command in it: put before the command. */
  readonly within: readonly [command: string, ...args: string[]]
  /** Address of the site. */
  readonly address: string
  /** Address of the test, as the site sees it. */
  readonly outside: string
}

/** Two sites without a route to each other. */
export interface Sites {
  readonly a: Site
  readonly b: Site
  /** Gives B a way to one port of A, with a delay and losses; returns the address that B connects to. */
  readonly join: (port: number, link: LinkOptions) => Promise<string>
  /** Takes down the line between the sites, or brings it up. */
  line(up: boolean): void
  close(): void
}

/** How a line behaves. */
interface LinkOptions {
  /** Milliseconds in each direction. */
  readonly delayMs: number
  /** Share of packets that must be sent again. */
  readonly loss: number
}

const ip = findTool('ip')
const PREFIX = 'patchmirror-sites-'

/** Why there can be no sites here; null: there can. */
export function whyNoSites(): string | null {
  if (process.getuid?.() !== 0) return 'not root'
  if (ip === null) return 'ip is not installed'
  const name = `${PREFIX}${process.pid}-try`
  try {
    run('netns', 'add', name)
    run('netns', 'del', name)
    return null
  } catch {
    return 'no network namespaces'
  }
}

function run(...args: readonly string[]): string {
  return execFileSync(ip ?? 'ip', args, { stdio: ['ignore', 'pipe', 'pipe'] }).toString()
}

/** Removes what runs left that were killed. */
function removeStale(): void {
  for (const [name, pid] of run('netns', 'list').matchAll(/patchmirror-sites-(\d+)-\w+/g))
    if (!existsSync(`/proc/${pid}`)) run('netns', 'del', name)
}

/** Makes two sites. They are removed by `close`, and also when this process ends without it. */
export function openSites(): Sites {
  removeStale()
  // Two runs at a time have other process ids, and so other networks.
  const net = `10.${100 + ((process.pid >> 8) % 100)}.${process.pid % 256}`
  const host = (subnet: number, number: number): string => `${net}.${subnet * 16 + number}`
  const made: string[] = []
  const close = (): void => {
    for (const name of made.splice(0)) run('netns', 'del', name)
    process.off('exit', close)
  }
  process.once('exit', close)
  const wire = (name: string, inner: string, outer: string, subnet: number): void => {
    run('link', 'add', 'name', outer, 'type', 'veth', 'peer', 'name', inner, 'netns', name)
    run('address', 'add', `${host(subnet, 1)}/28`, 'dev', outer)
    run('link', 'set', outer, 'up')
    run('-n', name, 'address', 'add', `${host(subnet, 2)}/28`, 'dev', inner)
    run('-n', name, 'link', 'set', inner, 'up')
  }
  const site = (letter: string, subnet: number): Site => {
    const name = `${PREFIX}${process.pid}-${letter}`
    run('netns', 'add', name)
    made.push(name)
    run('-n', name, 'link', 'set', 'lo', 'up')
    wire(name, 'own0', `pm${letter}${process.pid}`, subnet)
    const within = [ip ?? 'ip', 'netns', 'exec', name] as const
    return { within, address: host(subnet, 2), outside: host(subnet, 1) }
  }
  try {
    const a = site('a', 1)
    const b = site('b', 2)
    const line = `pml${process.pid}`
    wire(`${PREFIX}${process.pid}-b`, 'line0', line, 3)
    const ends: (() => void)[] = []
    return {
      a,
      b,
      async join(port, options) {
        const link = await openLink({ host: a.address, port }, host(3, 1), options)
        ends.push(link.close)
        return `${host(3, 1)}:${link.port}`
      },
      line: (up) => void run('link', 'set', line, up ? 'up' : 'down'),
      close() {
        for (const end of ends) end()
        close()
      },
    }
  } catch (error) {
    close()
    throw error
  }
}

/** Bytes of a packet, and of those that are under way in one direction of a connection. */
const PACKET = 1448
const WINDOW = 262_144
/** Least time after which a packet is sent again, milliseconds, as Linux has it. */
const RESEND_MS = 200

/**
 * Passes connections on as a long line does: late, with the packets behind a lost one waiting for it, and with a limited
 * number of bytes under way. The kernel here may have no `netem`.
 */
async function openLink(
  target: { host: string; port: number },
  host: string,
  options: LinkOptions,
): Promise<{ port: number; close: () => void }> {
  const sockets = new Set<Socket>()
  const random = createRandom()
  const server = createServer((near) => {
    const far = createConnection(target)
    for (const socket of [near, far]) {
      sockets.add(socket.setNoDelay(true))
      socket.once('close', () => sockets.delete(socket))
    }
    // The connection itself costs a way there and back.
    passOn(near, far, options, random, 2 * options.delayMs)
    passOn(far, near, options, random, 0)
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return { port: (server.address() as AddressInfo).port, close }
}

function passOn(from: Socket, to: Socket, { delayMs, loss }: LinkOptions, random: () => number, firstMs: number): void {
  let due = performance.now() + firstMs
  let underWay = 0
  const later = (work: () => void): void => void setTimeout(work, Math.max(0, due - performance.now()))
  from.on('data', (chunk: Buffer) => {
    const arrives = random() < (1 - loss) ** Math.ceil(chunk.length / PACKET)
    const takes = arrives ? delayMs : 3 * delayMs + RESEND_MS
    due = Math.max(due, performance.now() + takes)
    underWay += chunk.length
    if (underWay > WINDOW) from.pause()
    later(() => {
      underWay -= chunk.length
      if (underWay <= WINDOW) from.resume()
      if (!to.destroyed) to.write(chunk)
    })
  })
  from.once('end', () => later(() => void to.end()))
  from.on('error', () => to.destroy())
  from.once('close', () => later(() => to.destroySoon()))
}

/** Numbers from 0 to 1, the same ones in each run. */
function createRandom(): () => number {
  let state = 20_261_122
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
