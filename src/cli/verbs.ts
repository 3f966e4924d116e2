import type { Command } from 'commander'
import type { GlobalOptions } from './runner.ts'

/** An option's flags and its description. */
export type Flag = readonly [string, string]
/** Adds a command. */
export type Add = (name: string, description: string) => Command

/** Adds commands to a parent, none of which ends the process by itself. */
export function adder(parent: Command): Add {
  return (name, description) =>
    parent.command(name).description(description).showHelpAfterError().exitOverride()
}

/** The command's own options and the global ones; each command names the ones it reads. */
export function global(command: Command): GlobalOptions & Record<string, never> {
  return command.optsWithGlobals()
}

/** The command whose action runs, as a line of usage: `patchmirror runs [options] [run]`. */
export function usageOf(command: Command): string {
  const names: string[] = []
  for (let at: Command | null = command; at !== null; at = at.parent) names.unshift(at.name())
  return `usage: ${names.join(' ')} ${command.usage()}`
}

/** Sets the exit code when the work is done. */
export async function finish(work: number | Promise<number>): Promise<void> {
  process.exitCode = await work
}
