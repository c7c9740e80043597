// The dashboard has no service worker. A registered one comes from a program that used this port while no collector
// ran.

export async function removeWorkers() {
  try {
    const found = await navigator.serviceWorker?.getRegistrations() ?? [];
    await Promise.all(found.map((one) => one.unregister()));
    // Answers that came through the worker cannot be trusted.
    if (found.length > 0 && navigator.serviceWorker.controller) location.reload();
  } catch {
    // Browsers without service workers throw here.
  }
}
