{-# LANGUAGE DefaultSignatures #-}
{-# LANGUAGE ForeignFunctionInterface #-}
{-# LANGUAGE ScopedTypeVariables #-}

-- | Runs models that @hagane build@ compiled.
--
-- > withModel "net.hagane" $ \model -> do
-- >   found <- run model [("x", fromList [1, 3] [0.5, 1, 2 :: Float])]
-- >   print (lookup "y" found >>= toList :: Maybe [Float])
module Hagane
  ( -- * Models
    Model
  , Argument (..)
  , open
  , openWith
  , close
  , withModel
  , inputs
  , outputs
  , run
  , runOutputs
    -- * Tensors
  , Tensor (..)
  , Element (..)
  , fromList
  , toList
    -- * Errors
  , HaganeError (..)
  ) where

import Control.Concurrent.MVar (MVar, modifyMVar, modifyMVar_, newMVar)
import Control.Exception (Exception (..), bracket, finally, mask, onException, throw, throwIO)
import Control.Monad (forM, unless, when, zipWithM_)
import qualified Data.ByteString as B
import qualified Data.ByteString.Internal as BI
import qualified Data.ByteString.Unsafe as BU
import Data.Int (Int16, Int32, Int64, Int8)
import Data.Proxy (Proxy (..))
import Data.Word (Word16, Word32, Word64, Word8)
import Foreign.C.String (CString)
import Foreign.C.Types (CSize (..))
import Foreign.ForeignPtr (FinalizerPtr, ForeignPtr, finalizeForeignPtr, newForeignPtr, withForeignPtr)
import Foreign.Marshal.Alloc (alloca, allocaBytes, free)
import Foreign.Marshal.Array (peekArray, pokeArray)
import Foreign.Marshal.Utils (fillBytes)
import Foreign.Ptr (Ptr, castPtr, nullPtr, plusPtr)
import Foreign.Storable (Storable (..))
import GHC.Foreign (peekCString, withCString)
import GHC.IO.Encoding (TextEncoding, getFileSystemEncoding)
import GHC.IO.Encoding.Failure (CodingFailureMode (RoundtripFailure))
import GHC.IO.Encoding.UTF8 (mkUTF8)
import System.IO.Unsafe (unsafePerformIO)

data CModel

foreign import ccall safe "hagane_hs_open"
  c_open :: CString -> Int32 -> Ptr (Ptr CModel) -> Ptr CString -> IO Int32

foreign import ccall "&hagane_close"
  c_close :: FinalizerPtr CModel

foreign import ccall unsafe "hagane_inputs"
  c_inputs :: Ptr CModel -> IO CSize

foreign import ccall unsafe "hagane_outputs"
  c_outputs :: Ptr CModel -> IO CSize

foreign import ccall unsafe "hagane_hs_input"
  c_input :: Describe

foreign import ccall unsafe "hagane_hs_output"
  c_output :: Describe

foreign import ccall safe "hagane_hs_run"
  c_run :: Ptr CModel -> Ptr () -> CSize -> Ptr () -> CSize -> Ptr CString -> IO Int32

foreign import ccall unsafe "hagane_release"
  c_release :: Ptr CModel -> Ptr () -> CSize -> IO ()

type Describe = Ptr CModel -> CSize -> Ptr () -> Ptr CString -> IO Int32

-- | A call that failed: its code, as hagane.h has them, and hagane's message.
data HaganeError = HaganeError Int String
  deriving (Eq, Show)

instance Exception HaganeError where
  displayException (HaganeError _ message) = message

invalid :: String -> HaganeError
invalid = HaganeError 1

-- | A build that is open. Threads may run it at the same time. One that is no longer reachable is
-- closed by the garbage collector.
newtype Model = Model (MVar (Maybe Opened))

-- | The model of the library, and how many threads run it.
data Opened = Opened (ForeignPtr CModel) !Int

-- | An input or output: its element type as a number of ONNX's TensorProto.DataType, and the least and
-- most of each size that the model was built for.
data Argument = Argument
  { argumentName :: String
  , argumentType :: Int
  , least :: [Int]
  , most :: [Int]
  }
  deriving (Eq, Show)

-- | Numbers of one type in row-major order. The type is a number of TensorProto.DataType.
data Tensor = Tensor
  { tensorType :: Int
  , shape :: [Int]
  , bytes :: B.ByteString
  }
  deriving (Eq, Show)

-- | Types of elements. Tensors of others, such as float16 (10), are made and read as 'bytes'.
class Element a where
  -- | The number of TensorProto.DataType.
  typeNumber :: Proxy a -> Int

  encode :: [a] -> B.ByteString
  default encode :: Storable a => [a] -> B.ByteString
  encode items = BI.unsafeCreate (length items * size) $ \place -> pokeArray (castPtr place) items
    where
      size = case items of
        [] -> 0
        first : _ -> sizeOf first

  decode :: B.ByteString -> [a]
  default decode :: Storable a => B.ByteString -> [a]
  decode held = unsafePerformIO . BU.unsafeUseAsCString held $ \place ->
    peekArray (B.length held `div` sizeOf (undefined :: a)) (castPtr place)

instance Element Float where typeNumber _ = 1
instance Element Word8 where typeNumber _ = 2
instance Element Int8 where typeNumber _ = 3
instance Element Word16 where typeNumber _ = 4
instance Element Int16 where typeNumber _ = 5
instance Element Int32 where typeNumber _ = 6
instance Element Int64 where typeNumber _ = 7
instance Element Double where typeNumber _ = 11
instance Element Word32 where typeNumber _ = 12
instance Element Word64 where typeNumber _ = 13

instance Element Bool where
  typeNumber _ = 9
  encode = B.pack . map (fromIntegral . fromEnum)
  decode = map (/= 0) . B.unpack

-- | Return a tensor of a shape; throws a 'HaganeError' where the number of elements is another.
fromList :: forall a. Element a => [Int] -> [a] -> Tensor
fromList sizes items
  | length items == product sizes = Tensor (typeNumber (Proxy :: Proxy a)) sizes (encode items)
  | otherwise = throw . invalid $
      "expected " ++ show (product sizes) ++ " elements for the shape " ++ show sizes
        ++ ", got " ++ show (length items)

-- | Return the elements of a tensor; 'Nothing' if they are of another type.
toList :: forall a. Element a => Tensor -> Maybe [a]
toList tensor
  | tensorType tensor == typeNumber (Proxy :: Proxy a) = Just (decode (bytes tensor))
  | otherwise = Nothing

-- | Open the build in a folder. It runs on as many threads as it was made for, or cores there are.
--
-- Throws a 'HaganeError' if the folder holds no build, or one for other processors.
open :: FilePath -> IO Model
open = openWith 0

-- | The same, with the number of threads of a run.
openWith :: Int -> FilePath -> IO Model
openWith threads folder = alloca $ \place -> do
  poke place nullPtr
  when ('\0' `elem` folder) . throwIO $ HaganeError 2 (show folder ++ ": a path has no zero byte")
  encoding <- getFileSystemEncoding
  withCString encoding folder $ \path -> checked (c_open path (fromIntegral threads) place)
  handle <- peek place >>= newForeignPtr c_close
  Model <$> newMVar (Just (Opened handle 0))

-- | Close a model and release its memory; to close it again does nothing.
--
-- Throws a 'HaganeError' while a thread runs it.
close :: Model -> IO ()
close (Model state) = modifyMVar_ state $ \found -> case found of
  Nothing -> return Nothing
  Just (Opened handle running) -> do
    when (running > 0) . throwIO $ invalid "the model is running"
    finalizeForeignPtr handle
    return Nothing

-- | Open a build, use it, and close it.
withModel :: FilePath -> (Model -> IO a) -> IO a
withModel folder = bracket (open folder) close

-- | Describe the inputs.
inputs :: Model -> IO [Argument]
inputs model = described model c_inputs c_input

-- | Describe the outputs.
outputs :: Model -> IO [Argument]
outputs model = described model c_outputs c_output

-- | Run the model on inputs by name, and return all outputs by name.
--
-- Throws a 'HaganeError' if an input is missing, unknown, or of another type or size, or the model is
-- closed.
run :: Model -> [(String, Tensor)] -> IO [(String, Tensor)]
run model given = do
  found <- outputs model
  runOutputs model (map argumentName found) given

-- | The same, for some outputs.
runOutputs :: Model -> [String] -> [(String, Tensor)] -> IO [(String, Tensor)]
runOutputs model wanted given = using model $ \handle ->
  withArguments given $ \ins -> withArguments [(key, noTensor) | key <- wanted] $ \outs -> do
    checked (c_run handle ins (count given) outs (count wanted))
    found <- forM (zip wanted [0 ..]) (\(key, i) -> (,) key <$> peekTensor (outs `plusPtr` (i * tensorBytes)))
      `onException` c_release handle outs (count wanted)
    c_release handle outs (count wanted)
    return found
  where
    count :: [a] -> CSize
    count = fromIntegral . length
    noTensor = Tensor 0 [] B.empty

-- | Use a model that nobody closes meanwhile.
using :: Model -> (Ptr CModel -> IO a) -> IO a
using (Model state) action = mask $ \restore -> do
  handle <- modifyMVar state $ \found -> case found of
    Nothing -> throwIO (invalid "the model is closed")
    Just (Opened handle running) -> return (Just (Opened handle (running + 1)), handle)
  restore (withForeignPtr handle action) `finally` modifyMVar_ state (return . fmap left)
  where
    left (Opened handle running) = Opened handle (running - 1)

-- | Names and messages; a byte that is no UTF-8 stands for itself.
utf8 :: TextEncoding
utf8 = mkUTF8 RoundtripFailure

-- | Call a function that returns a code, and gives a message where it fails.
checked :: (Ptr CString -> IO Int32) -> IO ()
checked call = alloca $ \place -> do
  poke place nullPtr
  code <- call place
  unless (code == 0) $ do
    text <- peek place
    message <- if text == nullPtr then return "" else peekCString utf8 text
    free text
    throwIO (HaganeError (fromIntegral code) message)

-- The structs of hagane.h: where their fields lie, in bytes.
pointerBytes, placeOfType, placeOfRank, placeOfShape, placeOfMost, tensorBytes, infoBytes, axes :: Int
pointerBytes = sizeOf nullPtr
placeOfType = pointerBytes
placeOfRank = pointerBytes + 4
placeOfShape = 16
placeOfMost = 144
tensorBytes = 144 + 2 * pointerBytes
infoBytes = 272
axes = 16

described :: Model -> (Ptr CModel -> IO CSize) -> Describe -> IO [Argument]
described model counted describe = using model $ \handle -> do
  many <- counted handle
  forM (takeWhile (< many) [0 ..]) $ \i -> allocaBytes infoBytes $ \info -> do
    checked (describe handle i info)
    text <- peekByteOff info 0 >>= peekCString utf8
    kind <- peekByteOff info placeOfType :: IO Int32
    rank <- peekByteOff info placeOfRank :: IO Int32
    let sizes at = map fromIntegral <$> peekArray (fromIntegral rank) (info `plusPtr` at :: Ptr Int64)
    Argument text (fromIntegral kind) <$> sizes placeOfShape <*> sizes placeOfMost

-- | Lay tensors out as hagane.h has them.
withArguments :: [(String, Tensor)] -> (Ptr () -> IO a) -> IO a
withArguments given action = allocaBytes (max 1 (length given * tensorBytes)) $ \place -> do
  fillBytes place 0 (length given * tensorBytes)
  fill place given
  where
    fill place [] = action (place `plusPtr` negate (length given * tensorBytes))
    fill place ((key, tensor) : others) = do
      when (length (shape tensor) > axes) . throwIO . invalid $
        "'" ++ key ++ "' has " ++ show (length (shape tensor)) ++ " axes: expected at most " ++ show axes
      when ('\0' `elem` key) . throwIO . invalid $ "there is no input or output " ++ show key
      when (any (< 0) (shape tensor)) . throwIO . invalid $ "'" ++ key ++ "' has a negative size"
      withCString utf8 key $ \text -> BU.unsafeUseAsCStringLen (bytes tensor) $ \(held, size) -> do
        pokeByteOff place 0 text
        pokeByteOff place placeOfType (fromIntegral (tensorType tensor) :: Int32)
        pokeByteOff place placeOfRank (fromIntegral (length (shape tensor)) :: Int32)
        zipWithM_ (pokeSize (place `plusPtr` placeOfShape)) [0 ..] (shape tensor)
        pokeByteOff place placeOfMost (if tensorType tensor == 0 then nullPtr else held)
        pokeByteOff place (placeOfMost + pointerBytes) (fromIntegral size :: CSize)
        fill (place `plusPtr` tensorBytes) others
    pokeSize :: Ptr Int64 -> Int -> Int -> IO ()
    pokeSize place i size = pokeElemOff place i (fromIntegral size)

peekTensor :: Ptr () -> IO Tensor
peekTensor place = do
  kind <- peekByteOff place placeOfType :: IO Int32
  rank <- peekByteOff place placeOfRank :: IO Int32
  sizes <- peekArray (fromIntegral rank) (place `plusPtr` placeOfShape :: Ptr Int64)
  held <- peekByteOff place placeOfMost
  size <- peekByteOff place (placeOfMost + pointerBytes) :: IO CSize
  Tensor (fromIntegral kind) (map fromIntegral sizes) <$> B.packCStringLen (held, fromIntegral size)
