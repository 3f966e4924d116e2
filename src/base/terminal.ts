type Environment = Readonly<Partial<Record<string, string>>>

/** A stream that may be a terminal. */
interface MaybeTerminal {
  readonly isTTY?: boolean
}

/** Reports whether a stream is a terminal that understands control sequences, such as those that move the cursor. */
export function movesCursor(stream: MaybeTerminal, env: Environment = process.env): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

/**
 * Reports whether to write colours to a stream: not with NO_COLOR (https://no-color.org), else as FORCE_COLOR says
 * (`0` or `false`: not), else on terminals.
 */
export function hasColor(stream: MaybeTerminal, env: Environment = process.env): boolean {
  if ((env['NO_COLOR'] ?? '') !== '') return false
  const force = env['FORCE_COLOR']
  if (force !== undefined) return force !== '0' && force !== 'false'
  return movesCursor(stream, env)
}
