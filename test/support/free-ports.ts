import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Ports that the system gives to nobody who leaves the choice to it, so that none is taken between the look here and the
 * start of the program that is told to listen there: Linux gives 32768 and up, other systems 49152 and up.
 */
const FIRST_PORT = 10_000
const PORTS = 22_000
/** How far the ranges of two processes that start after each other lie apart. */
const STEP = 211

let next = (process.pid * STEP) % PORTS

/** Whether nothing listens on a port of the loopback now. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false // taken
  }
  server.close()
  await once(server, 'close')
  return true
}

/** Returns a port of the loopback that nothing listens on. The same process is given each port once. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PORTS; tried++) {
    const port = FIRST_PORT + next
    next = (next + 1) % PORTS
    if (await isFree(port)) return port
  }
  throw new Error(`no port from ${FIRST_PORT} to ${FIRST_PORT + PORTS - 1} is free`)
}

/** Returns ports of the loopback that nothing listens on, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await freePort())
  return ports
}

/** Returns the first of so many free ports that follow each other. Takes them all at once: others ask meanwhile. */
export async function portsInARow(count: number): Promise<number> {
  for (let tried = 0; tried < PORTS / count; tried++) {
    const first = FIRST_PORT + next
    next = (next + count) % PORTS
    const ports = Array.from({ length: count }, (_, at) => first + at)
    const free = await Promise.all(ports.map(isFree))
    if (first + count <= FIRST_PORT + PORTS && free.every(Boolean)) return first
  }
  throw new Error(`no ${count} ports that follow each other are free`)
}
