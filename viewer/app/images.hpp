// app/images: pictures of pages as textures of the current OpenGL context.
//
// PNG only, as the project's own are. A file that cannot be read is no picture, and is asked for once.
#pragma once

namespace shardbook::app {

// REQUIRES: an OpenGL context is current, now and whenever a page is drawn. Forgets the pictures of a context before.
void show_images_of_pages();
// Before the context goes.
void forget_images();

}  // namespace shardbook::app
