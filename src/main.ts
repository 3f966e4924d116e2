#!/usr/bin/env node
import { type Command, CommanderError, asksVersionAsJson, createProgram, usageOf } from './cli/program.ts'
import { FEATURES } from './features.ts'
import { MirrorError, exitCode, messageOf } from './base/errors.ts'

// Restricts everything that a command creates to its own user: databases, archives, bundles, downloads, locks.
process.umask(0o077)

// What a command does goes on although its output is lost. That is no failure where its reader is gone (`| head`: EPIPE) or the terminal
// was closed (EIO; SIGHUP ends the command where it is due, in good order). On a full disk what is there is cut off: exit code 1.
let isCutOff = false
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EIO' || error.code === 'EPIPE' || isCutOff) return
    isCutOff = true
    process.on('exit', (code) => void (process.exitCode = code === 0 ? 1 : code))
    // The error of standard error itself is lost.
    if (stream === process.stdout) process.stderr.write(`patchmirror: the output cannot be written: ${error.message}\n`)
  })

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  const text = `Node 22.19 or later is needed, and this is ${process.versions.node}. In a checkout, "npm run patchmirror" brings its own.`
  process.stderr.write(`patchmirror: ${text}\n`)
  process.exit(2)
}

let running = null as Command | null // set by the hook, which the compiler does not follow
try {
  const program = createProgram(FEATURES)
  program.hook('preAction', (_, action) => void (running = action))
  const given = process.argv.slice(2)
  if (asksVersionAsJson(given)) await (await import('./cli/version.ts')).printVersion(FEATURES)
  else await program.parseAsync(given, { from: 'user' })
} catch (error) {
  // Commander has printed its own message already; 0 is --help and --version.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else {
    // Messages may contain text from upstream; characters that move a terminal's cursor are removed.
    process.stderr.write(`patchmirror: ${messageOf(error).replace(/[^\P{C}\n]+/gu, ' ')}\n`)
    if (error instanceof MirrorError && error.code === 'usage' && running !== null)
      process.stderr.write(`${usageOf(running)}\n`)
    if (!(error instanceof MirrorError)) process.stderr.write(`${error instanceof Error ? (error.stack ?? '') : ''}\n`)
    process.exitCode = exitCode(error)
  }
}
