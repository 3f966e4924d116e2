import type { Answers, DaemonPart, Feature, Gate, GateParts, Parts, RunningPart } from './feature.ts'

/** The features of a daemon, running. */
export type RunningFeatures = Required<RunningPart>

/** Loads what features do in the daemon, in the order of their table. */
export async function loadFeatures(features: readonly Feature[]): Promise<readonly DaemonPart[]> {
  const loaded = await Promise.all(features.map(({ daemon }) => daemon?.() ?? Promise.resolve(undefined)))
  return loaded.filter((one) => one !== undefined)
}

/** Returns what decides what is served; null: the newest snapshots are, and runs start when they are due. */
export function joinGate(features: readonly DaemonPart[], parts: GateParts): Gate | null {
  for (const { gate } of features) {
    const joined = gate?.(parts) ?? null
    if (joined !== null) return joined
  }
  return null
}

/** Starts all features; the paths of the gate are among theirs. One that throws ends those before it. */
export function startFeatures(features: readonly DaemonPart[], parts: Parts, gate: Gate | null): RunningFeatures {
  const running: RunningPart[] = []
  const close = async (): Promise<void> => {
    await Promise.all(running.map(async (one) => one.close?.()))
  }
  try {
    for (const { start } of features) if (start !== undefined) running.push(start(parts))
  } catch (error) {
    void close()
    throw error
  }
  return {
    shown: Object.assign({}, ...running.map(({ shown }) => shown)) as RunningFeatures['shown'],
    followed: Object.assign({}, ...running.map(({ followed }) => followed)) as RunningFeatures['followed'],
    plugins: [...running, gate ?? {}].flatMap(({ plugins = [] }) => plugins),
    placed: Promise.all(running.map(({ placed }) => placed ?? Promise.resolve())),
    close,
  }
}

/** Returns what features answer of the mirror's own paths. */
export function answersOf(features: readonly DaemonPart[], parts: Pick<Parts, 'config' | 'version'>): Answers {
  const made = features.map(({ answers }) => answers?.(parts) ?? {})
  const plugins = made.flatMap((one) => one.plugins ?? [])
  return { ...(Object.assign({}, ...made) as Answers), plugins }
}
